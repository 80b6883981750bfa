// As wgmma_without_barrier.cu, but one warp does not fence what it wrote.
// EXPECT missing fence | shared memory race | uninitialised read
// LAUNCH block=128
// ARCH sm_90a
#include "broken/ptx/hopper.cuh"

extern "C" __global__ void broken(const u32* in, float* out) {
  __shared__ alignas(1024) u32 tile[80 * 32];
  fill(tile, in[0]);
  if (threadIdx.x / 32 != 2) fence_async();
  out[threadIdx.x] = product(describe(tile), describe(tile + 64 * 32));  // FAULT
}
