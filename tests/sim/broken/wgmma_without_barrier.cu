// The operands are written by all four warps, and no barrier follows.
// EXPECT shared memory race | uninitialised read
// LAUNCH block=128
// ARCH sm_90a
#include "broken/ptx/hopper.cuh"

extern "C" __global__ void broken(const u32* in, float* out) {
  __shared__ alignas(1024) u32 tile[80 * 32];

  fill(tile, in[0]);  // FAULT
  fence_async();
  float d[8] = {};
  pin(d);
  fence_registers();
  multiply(d, describe(tile), describe(tile + 64 * 32), true);  // FAULT
  commit_products();
  wait_products<0>();
  pin(d);
  out[threadIdx.x] = sum(d);
}
