// Nothing keeps a CTA from exiting while its neighbour reads.
// EXPECT unwaited asynchronous effect | out of bounds
// LAUNCH grid=2
// ARCH sm_90a
#include "broken/ptx/hopper.cuh"

extern "C" __global__ void __cluster_dims__(2) broken(const u32* in, u32* out) {
  __shared__ u32 box[32];
  box[threadIdx.x] = in[threadIdx.x];
  cluster_arrive();
  cluster_wait();
  const u32 there = remote(&box[threadIdx.x], cluster_rank() ^ 1);
  out[blockIdx.x * 32 + threadIdx.x] = load_remote(there);  // FAULT
}
