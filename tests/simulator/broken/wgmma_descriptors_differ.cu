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
  const u32* b = tile + 64 * 32 + threadIdx.x / 32 * 16 * 32;
  out[threadIdx.x] = product(describe(tile), describe(b));  // FAULT
}
