// A CTA counts in its neighbour's word, which reads it with no barrier in between.
// EXPECT shared memory race
// LAUNCH grid=2
// ARCH sm_90a
#include "broken/ptx/hopper.cuh"

extern "C" __global__ void __cluster_dims__(2) broken(const u32* in, u32* out) {
  __shared__ u32 count;
  if (threadIdx.x == 0) count = in[0];
  cluster_arrive();
  cluster_wait();
  if (cluster_rank() == 0 && threadIdx.x == 0) add_remote(&count, 1, 1);  // FAULT
  if (cluster_rank() == 1) out[threadIdx.x] = count;                      // FAULT
  cluster_arrive();
  cluster_wait();
}
