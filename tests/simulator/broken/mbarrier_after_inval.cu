// An mbarrier is used after it was invalidated.
// EXPECT barrier misuse
// ARCH sm_90a
#include "broken/ptx/hopper.cuh"

extern "C" __global__ void broken(const u32* in, u32* out) {
  __shared__ u64 bar;
  if (threadIdx.x == 0) {
    init(bar, 1);
    invalidate(bar);
    arrive(bar);  // FAULT
  }
  __syncthreads();
  out[threadIdx.x] = in[threadIdx.x];
}
