// The mbarrier is never initialised.
// EXPECT barrier misuse
// ARCH sm_90a
#include "broken/ptx/hopper.cuh"

extern "C" __global__ void broken(const u32* in, u32* out) {
  __shared__ u64 bar;
  arrive(bar);  // FAULT
  out[threadIdx.x] = in[threadIdx.x];
}
