// A CTA writes by a generic address what its neighbour reads, with no barrier in between.
// EXPECT shared memory race
// LAUNCH grid=2
// ARCH sm_90a
#include "broken/ptx/hopper.cuh"

extern "C" __global__ void __cluster_dims__(2) broken(const u32* in, u32* out) {
  __shared__ u32 box[32];
  box[threadIdx.x] = in[threadIdx.x];
  cluster_arrive();
  cluster_wait();
  if (cluster_rank() == 0) store_generic(&box[threadIdx.x], 1, 5);  // FAULT
  if (cluster_rank() == 1) out[threadIdx.x] = box[threadIdx.x];     // FAULT
  cluster_arrive();
  cluster_wait();
}
