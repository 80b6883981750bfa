// The operands are written by all four warps, and no barrier follows.
// EXPECT shared memory race | uninitialised read
// PROVEN nothing
// LAUNCH block=128
// ARCH sm_90a
#include "broken/ptx/hopper.cuh"

extern "C" __global__ void broken(const u32* in, float* out) {
  __shared__ alignas(1024) u32 tile[80 * 32];
  fill(tile, in[0]);  // FAULT
  fence_async();
  out[threadIdx.x] = product(describe(tile), describe(tile + 64 * 32));  // FAULT
}
