// One warp of the warpgroup leaves the product out.
// EXPECT deadlock | divergent barrier
// LAUNCH block=128
// ARCH sm_90a
#include "broken/ptx/hopper.cuh"

extern "C" __global__ void broken(const u32* in, float* out) {
  __shared__ alignas(1024) u32 tile[80 * 32];
  prepare(tile, in[0]);
  float d[8] = {};
  pin(d);
  fence_registers();
  if (threadIdx.x < 96) {
    multiply(d, describe(tile), describe(tile + 64 * 32), true);  // FAULT
    commit_products();
    wait_products<0>();  // FAULT
  }
  pin(d);
  out[threadIdx.x] = sum(d);
}
