// A tile with a swizzle of 128 bytes begins in the middle of its pattern: the address says which row
// of the pattern each of its rows is.
// EXPECT nothing
// LAUNCH block=128
// ARCH sm_90a
#include "broken/ptx/hopper.cuh"

extern "C" __global__ void broken(const u32* in, float* out) {
  __shared__ alignas(1024) u32 room[84 * 32];
  u32* tile = room + 4 * 32;
  prepare(tile, in[0]);
  out[threadIdx.x] = product(describe(tile), describe(tile + 64 * 32));
}
