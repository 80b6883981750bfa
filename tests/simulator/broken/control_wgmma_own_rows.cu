// A warp overwrites the rows of A that it alone reads, after its own wait. That is right under both
// readings of what a wait covers.
// EXPECT nothing
// LAUNCH block=128
// WITH products=2
// ARCH sm_90a
#include "broken/ptx/hopper.cuh"

extern "C" __global__ void broken(const u32* in, float* out) {
  __shared__ alignas(1024) u32 tile[80 * 32];
  prepare(tile, in[0]);
  out[threadIdx.x] = product(describe(tile), describe(tile + 64 * 32));
  for (u32 i = threadIdx.x % 32; i < 16 * 32; i += 32) tile[threadIdx.x / 32 * 16 * 32 + i] = i;
}
