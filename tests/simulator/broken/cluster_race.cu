// A CTA reads what its neighbour writes, and only the neighbour waits.
// EXPECT shared memory race | uninitialised read
// LAUNCH grid=2
// ARCH sm_90a
#include "broken/ptx/hopper.cuh"

extern "C" __global__ void __cluster_dims__(2) broken(const u32* in, u32* out) {
  __shared__ u32 box[32];
  box[threadIdx.x] = in[threadIdx.x];
  cluster_arrive();
  cluster_wait();
  if (cluster_rank() == 0) store_remote(remote(&box[threadIdx.x], 1), in[threadIdx.x] + 1);  // FAULT
  if (cluster_rank() == 1) out[threadIdx.x] = box[threadIdx.x];  // FAULT
  cluster_arrive();
  cluster_wait();
}
