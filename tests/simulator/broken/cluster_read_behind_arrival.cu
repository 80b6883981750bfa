// A barrier of a cluster orders what comes before the arrival: a warp reads a number behind its own,
// and another, past its wait, clears it. FlashInfer's selection of the largest does so.
// EXPECT shared memory race
// LAUNCH grid=2 block=64
// ARCH sm_90a
#include "broken/ptx/hopper.cuh"

extern "C" __global__ void __cluster_dims__(2) broken(const u32* in, u32* out) {
  __shared__ u32 count;
  if (threadIdx.x == 0) count = in[blockIdx.x];
  __syncthreads();
  cluster_arrive();
  const u32 seen = count;  // FAULT
  cluster_wait();
  if (threadIdx.x == 0) count = 0;  // FAULT
  out[blockIdx.x * 64 + threadIdx.x] = seen;
}
