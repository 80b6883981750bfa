// A number is read before the arrival at a barrier of the cluster, and cleared behind the wait; what
// is read in between, nobody writes.
// EXPECT nothing
// LAUNCH grid=2 block=64
// ARCH sm_90a
#include "broken/ptx/hopper.cuh"

extern "C" __global__ void __cluster_dims__(2) broken(const u32* in, u32* out) {
  __shared__ u32 count, other;
  if (threadIdx.x == 0) count = in[blockIdx.x], other = in[blockIdx.x + 2];
  __syncthreads();
  const u32 seen = count;
  cluster_arrive();
  const u32 more = other;
  cluster_wait();
  if (threadIdx.x == 0) count = 0;
  out[blockIdx.x * 64 + threadIdx.x] = seen + more;
}
