// The wait lets one group stay in flight, which is the one whose result is read.
// EXPECT access to a register in flight
// LAUNCH block=128
// ARCH sm_90a
#include "broken/ptx/hopper.cuh"

extern "C" __global__ void broken(const u32* in, float* out) {
  __shared__ alignas(1024) u32 tile[80 * 32];
  prepare(tile, in[0]);
  float first[8] = {}, second[8] = {};
  pin(first);
  pin(second);
  fence_registers();
  multiply(first, describe(tile), describe(tile + 64 * 32), true);
  commit_products();
  multiply(second, describe(tile), describe(tile + 64 * 32), true);
  commit_products();
  wait_products<1>();
  out[threadIdx.x] = sum(first);
  out[128 + threadIdx.x] = sum(second);  // FAULT
  wait_products<0>();
}
