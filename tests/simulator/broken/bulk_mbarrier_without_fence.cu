// Neither fence makes the new mbarrier known to the asynchronous proxy.
// EXPECT missing fence
// PROVEN nothing
// LAUNCH block=64
// ARCH sm_90a
#include "broken/ptx/hopper.cuh"

extern "C" __global__ void broken(const u32* in, u32* out) {
  __shared__ alignas(128) u32 tile[256];
  __shared__ u64 bar;
  if (threadIdx.x == 0) init(bar, 1);
  __syncthreads();
  if (threadIdx.x == 32) {
    expect(bar, 1024);
    load(tile, in, 1024, bar);  // FAULT
  }
  wait(bar, 0);
  out[threadIdx.x] = tile[threadIdx.x];
}
