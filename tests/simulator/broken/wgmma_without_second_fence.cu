// The accumulators are scaled between two products, with no wgmma.fence behind that.
// EXPECT missing fence
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
  commit_products();
  wait_products<0>();
  pin(d);
#pragma unroll
  for (int i = 0; i < 8; ++i) d[i] *= 0.5f;
  pin(d);
  multiply(d, describe(tile), describe(tile + 64 * 32), true);  // FAULT
  commit_products();
  wait_products<0>();
  pin(d);
  out[threadIdx.x] = sum(d);
}
