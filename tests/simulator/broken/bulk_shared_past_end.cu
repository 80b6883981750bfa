// The copy reaches beyond shared memory.
// EXPECT out of bounds
// LAUNCH shared=1024
// ARCH sm_90a
#include "broken/ptx/hopper.cuh"

extern "C" __global__ void broken(const u32* in, u32* out) {
  extern __shared__ __align__(128) u32 tile[];
  __shared__ u64 bar;
  if (threadIdx.x == 0) {
    init(bar, 1);
    fence_init();
    expect(bar, 2048);
    load(tile, in, 2048, bar);  // FAULT
  }
  __syncthreads();
  wait(bar, 0);
  out[threadIdx.x] = tile[threadIdx.x];
}
