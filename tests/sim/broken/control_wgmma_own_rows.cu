// A warp overwrites the rows of A that it alone reads, after its own wait: right under both readings
// of what a wait covers.
// EXPECT nothing
// LAUNCH block=128
// WITH products=2
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
  multiply(d, describe(tile), describe(tile + 64 * 32), true);
  commit_products();
  wait_products<0>();
  pin(d);
  for (u32 i = threadIdx.x % 32; i < 16 * 32; i += 32) tile[threadIdx.x / 32 * 16 * 32 + i] = i;
  out[threadIdx.x] = sum(d);
}
