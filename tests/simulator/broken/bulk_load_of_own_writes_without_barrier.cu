// A bulk copy reads from global memory what another warp of the block writes, with no barrier in between.
// EXPECT global memory race | missing fence | uninitialised read
// LAUNCH block=64
// ARCH sm_90a
#include "broken/ptx/hopper.cuh"

extern "C" __global__ void broken(const u32* in, u32* out) {
  __shared__ alignas(128) u32 tile[64];
  __shared__ u64 bar;
  if (threadIdx.x == 0) {
    init(bar, 1);
    fence_init();
  }
  __syncthreads();
  out[threadIdx.x] = in[threadIdx.x] + 1;  // FAULT
  fence_async_global();
  __syncwarp();
  if (threadIdx.x == 0) {
    expect(bar, 256);
    load(tile, out, 256, bar);  // FAULT
  }
  wait(bar, 0);
  __syncthreads();
  out[64 + threadIdx.x] = tile[threadIdx.x];
}
