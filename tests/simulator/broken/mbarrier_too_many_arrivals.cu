// The last arrival counts for two where one is missing.
// EXPECT barrier misuse
// LAUNCH block=32
// ARCH sm_90a
#include "broken/ptx/hopper.cuh"

extern "C" __global__ void broken(const u32* in, u32* out) {
  __shared__ u64 bar;
  if (threadIdx.x == 0) init(bar, 63);
  __syncthreads();
  arrive(bar, 2);  // FAULT
  wait(bar, 0);
  out[threadIdx.x] = in[threadIdx.x];
}
