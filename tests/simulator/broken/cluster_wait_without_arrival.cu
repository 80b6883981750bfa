// A warp waits at the barrier of the cluster where it has not arrived.
// EXPECT barrier misuse
// LAUNCH grid=2 block=64
// ARCH sm_90a
#include "broken/ptx/hopper.cuh"

extern "C" __global__ void __cluster_dims__(2) broken(const u32* in, u32* out) {
  if (threadIdx.x < 32) cluster_arrive();
  cluster_wait();  // FAULT
  out[blockIdx.x * 64 + threadIdx.x] = in[threadIdx.x];
}
