// The fragment of A is changed before the product is over.
// EXPECT access to a register in flight
// LAUNCH block=128
// ARCH sm_90a
#include "broken/ptx/hopper.cuh"

extern "C" __global__ void broken(const u32* in, float* out) {
  __shared__ alignas(1024) u32 tile[80 * 32];
  prepare(tile, in[0]);
  float d[8] = {};
  u32 a[4] = {in[1], in[2], in[3], in[4]};
  pin(d);
  fence_registers();
  asm volatile("" : "+r"(a[0]), "+r"(a[1]), "+r"(a[2]), "+r"(a[3]));
  multiply(d, a, describe(tile + 64 * 32), true);
  commit_products();
  asm volatile("mov.b32 %0, 7;" : "+r"(a[0]));  // FAULT
  wait_products<0>();
  pin(d);
  out[threadIdx.x] = sum(d) + a[0];
}
