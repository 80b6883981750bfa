// The warps exit while a product is under way.
// EXPECT unwaited asynchronous effect
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
  out[threadIdx.x] = 1;
}  // FAULT
