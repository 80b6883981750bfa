// B begins in the last rows of shared memory.
// EXPECT out of bounds
// LAUNCH block=128
// ARCH sm_90a
#include "broken/ptx/hopper.cuh"

extern "C" __global__ void broken(const u32* in, float* out) {
  __shared__ alignas(1024) u32 tile[80 * 32];
  fill(tile, in[0]);
  fence_async();
  __syncthreads();
  float d[8] = {};
  pin(d);
  fence_registers();
  multiply(d, describe(tile), describe(tile + 72 * 32), true);  // FAULT
  commit_products();
  wait_products<0>();
  pin(d);
  out[threadIdx.x] = sum(d);
}
