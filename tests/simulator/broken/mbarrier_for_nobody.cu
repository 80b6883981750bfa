// An mbarrier is initialised for no arrivals.
// EXPECT invalid operand
// ARCH sm_90a
#include "broken/ptx/hopper.cuh"

extern "C" __global__ void broken(const u32* in, u32* out) {
  __shared__ u64 bar;
  if (threadIdx.x == 0) init(bar, in[0]);  // FAULT
  __syncthreads();
  out[threadIdx.x] = in[threadIdx.x];
}
