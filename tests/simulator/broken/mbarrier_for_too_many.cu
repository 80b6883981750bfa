// An mbarrier is initialised for more than 2^20 - 1 arrivals.
// EXPECT invalid operand
// ARCH sm_90a
#include "broken/ptx/hopper.cuh"

extern "C" __global__ void broken(const u32* in, u32* out) {
  __shared__ u64 bar;
  if (threadIdx.x == 0) init(bar, 1 << 20);  // FAULT
  __syncthreads();
  out[threadIdx.x] = in[threadIdx.x];
}
