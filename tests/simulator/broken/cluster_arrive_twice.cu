// A thread arrives twice at the barrier of the cluster with no wait in between.
// EXPECT barrier misuse
// LAUNCH grid=2
// ARCH sm_90a
#include "broken/ptx/hopper.cuh"

extern "C" __global__ void __cluster_dims__(2) broken(const u32* in, u32* out) {
  cluster_arrive();
  cluster_arrive();  // FAULT
  cluster_wait();
  out[blockIdx.x * 32 + threadIdx.x] = in[threadIdx.x];
}
