// A plain arrival is made in place of one that expects bytes, so the phase is over at once.
// EXPECT access to bytes in flight | uninitialised read
// LAUNCH block=64
// ARCH sm_90a
#include "broken/ptx/hopper.cuh"

extern "C" __global__ void broken(const u32* in, u32* out) {
  __shared__ alignas(128) u32 tile[256];
  __shared__ u64 bar;
  if (threadIdx.x == 0) {
    init(bar, 1);
    fence_init();
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    arrive(bar);
    load(tile, in, 1024, bar);
  }
  wait(bar, 0);
  out[threadIdx.x] = tile[threadIdx.x];  // FAULT
}
