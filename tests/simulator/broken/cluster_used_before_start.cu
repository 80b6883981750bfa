// The neighbour's shared memory is read before it is known to run.
// EXPECT shared memory race
// LAUNCH grid=2
// ARCH sm_90a
#include "broken/ptx/hopper.cuh"

extern "C" __global__ void __cluster_dims__(2) broken(const u32* in, u32* out) {
  __shared__ u32 box[32];
  box[threadIdx.x] = in[threadIdx.x];
  __syncthreads();
  const u32 there = remote(&box[threadIdx.x], cluster_rank() ^ 1);
  out[blockIdx.x * 32 + threadIdx.x] = load_remote(there);  // FAULT
  cluster_arrive();
  cluster_wait();
}
