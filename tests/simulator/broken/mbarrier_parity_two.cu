// A count of phases is given in place of its parity.
// EXPECT invalid operand
// ARCH sm_90a
#include "broken/ptx/hopper.cuh"

extern "C" __global__ void broken(const u32* in, u32* out) {
  __shared__ u64 bar;
  if (threadIdx.x == 0) init(bar, 1);
  __syncthreads();
  for (u32 i = 0; i < 4; ++i) {
    if (threadIdx.x == 0) arrive(bar);
    wait(bar, i);  // FAULT
    __syncthreads();
  }
  out[threadIdx.x] = in[threadIdx.x];
}
