// A bulk copy reads from global memory what the block wrote, behind a fence of each thread and a barrier.
// EXPECT nothing
// LAUNCH block=64
// ARCH sm_90a
#include "broken/ptx/hopper.cuh"

extern "C" __global__ void broken(const u32* in, u32* out) {
  __shared__ alignas(128) u32 tile[64];
  __shared__ u64 bar;
  out[threadIdx.x] = in[threadIdx.x] + 1;
  if (threadIdx.x == 0) {
    init(bar, 1);
    fence_init();
  }
  fence_async_global();
  __syncthreads();
  if (threadIdx.x == 0) {
    expect(bar, 256);
    load(tile, out, 256, bar);
  }
  wait(bar, 0);
  out[64 + threadIdx.x] = tile[threadIdx.x];
}
