// A thread overwrites in global memory what a bulk copy has read, after the wait for it.
// EXPECT nothing
// LAUNCH block=64
// ARCH sm_90a
#include "broken/ptx/hopper.cuh"

extern "C" __global__ void broken(const u32* in, u32* out) {
  __shared__ alignas(128) u32 tile[64];
  __shared__ u64 bar;
  out[threadIdx.x] = in[threadIdx.x];
  if (threadIdx.x == 0) {
    init(bar, 1);
    fence_init();
  }
  __threadfence();
  fence_async_global();
  __syncthreads();
  if (threadIdx.x == 0) {
    expect(bar, 256);
    load(tile, out, 256, bar);
  }
  wait(bar, 0);
  if (threadIdx.x == 0) out[5] = 7;
  out[64 + threadIdx.x] = tile[threadIdx.x];
}
