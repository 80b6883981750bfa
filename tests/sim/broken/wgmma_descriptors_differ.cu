// Each warp describes a B of its own.
// EXPECT invalid operand
// LAUNCH block=128
// ARCH sm_90a
#include "broken/ptx/hopper.cuh"

extern "C" __global__ void broken(const u32* in, float* out) {
  __shared__ alignas(1024) u32 tile[128 * 32];
  for (u32 i = threadIdx.x; i < 128 * 32; i += 128) tile[i] = in[0];
  fence_async();
  __syncthreads();
  float d[8] = {};
  pin(d);
  fence_registers();
  const u32* b = tile + 64 * 32 + threadIdx.x / 32 * 16 * 32;
  multiply(d, describe(tile), describe(b), true);  // FAULT
  commit_products();
  wait_products<0>();
  pin(d);
  out[threadIdx.x] = sum(d);
}
