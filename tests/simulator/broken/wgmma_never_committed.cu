// A wait covers committed groups, and the product is in none.
// EXPECT access to a register in flight
// LAUNCH block=128
// ARCH sm_90a
#include "broken/ptx/hopper.cuh"

extern "C" __global__ void broken(const u32* in, float* out) {
  __shared__ alignas(1024) u32 tile[80 * 32];
  prepare(tile, in[0]);
  float d[8] = {};
  pin(d);
  fence_registers();
  multiply(d, describe(tile), describe(tile + 64 * 32), true);
  wait_products<0>();
  out[threadIdx.x] = sum(d);  // FAULT
  commit_products();
  wait_products<0>();
}
