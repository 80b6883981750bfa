// The size of a copy is no multiple of 16.
// EXPECT invalid operand
// ARCH sm_90a
#include "broken/ptx/hopper.cuh"

extern "C" __global__ void broken(const u32* in, u32* out) {
  __shared__ alignas(128) u32 tile[256];
  __shared__ u64 bar;
  if (threadIdx.x == 0) {
    init(bar, 1);
    fence_init();
    expect(bar, 1000);
    load(tile, in, 1000, bar);  // FAULT
  }
  __syncthreads();
  wait(bar, 0);
  out[threadIdx.x] = tile[threadIdx.x];
}
