// An mbarrier is initialised again without having been invalidated.
// EXPECT barrier misuse
// PROVEN nothing
// ARCH sm_90a
#include "broken/ptx/hopper.cuh"

extern "C" __global__ void broken(const u32* in, u32* out) {
  __shared__ u64 bar;
  for (int tile = 0; tile < 2; ++tile) {
    if (threadIdx.x == 0) init(bar, 32);  // FAULT
    __syncthreads();
    arrive(bar);
    wait(bar, 0);
    __syncthreads();
  }
  out[threadIdx.x] = in[threadIdx.x];
}
