// There are two copies, but only the bytes of one are expected.
// EXPECT access to bytes in flight
// LAUNCH block=64
// ARCH sm_90a
#include "broken/ptx/hopper.cuh"

extern "C" __global__ void broken(const u32* in, u32* out) {
  __shared__ alignas(128) u32 tile[512];
  __shared__ u64 bar;
  if (threadIdx.x == 0) {
    init(bar, 1);
    fence_init();
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    expect(bar, 1024);
    load(tile, in, 1024, bar);
    load(tile + 256, in + 256, 1024, bar);
  }
  wait(bar, 0);
  out[threadIdx.x] = tile[threadIdx.x] + tile[256 + threadIdx.x];  // FAULT
}
