// There is no wgmma.fence between the zeros of the accumulators and the product.
// EXPECT missing fence
// LAUNCH block=128
// ARCH sm_90a
#include "broken/ptx/hopper.cuh"

extern "C" __global__ void broken(const u32* in, float* out) {
  __shared__ alignas(1024) u32 tile[80 * 32];
  prepare(tile, in[0]);
  float d[8] = {};
  pin(d);
  multiply(d, describe(tile), describe(tile + 64 * 32), true);  // FAULT
  commit_products();
  wait_products<0>();
  pin(d);
  out[threadIdx.x] = sum(d);
}
