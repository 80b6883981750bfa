// A reserved bit of the descriptor is set.
// EXPECT invalid operand
// LAUNCH block=128
// ARCH sm_90a
#include "broken/ptx/hopper.cuh"

extern "C" __global__ void broken(const u32* in, float* out) {
  __shared__ alignas(1024) u32 tile[80 * 32];
  prepare(tile, in[0]);
  out[threadIdx.x] = product(describe(tile) | 1ull << 14, describe(tile + 64 * 32));  // FAULT
}
