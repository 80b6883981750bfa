// Two CTAs count in each other's words and in their own, by atomics and by generic addresses, and neither
// leaves before the other has.
// EXPECT nothing
// LAUNCH grid=4 block=64
// ARCH sm_90a
#include "broken/ptx/hopper.cuh"

extern "C" __global__ void __cluster_dims__(2) broken(const u32* in, u32* out) {
  __shared__ u32 counts[8];
  if (threadIdx.x < 8) counts[threadIdx.x] = 0;
  cluster_arrive();
  cluster_wait();
  for (u32 rank = 0; rank < 2; ++rank) add_remote(&counts[in[threadIdx.x] % 8], rank, 1);
  cluster_arrive();
  cluster_wait();
  out[blockIdx.x * 64 + threadIdx.x] =
      load_generic(&counts[threadIdx.x % 8], cluster_rank() ^ 1) - counts[threadIdx.x % 8];
  cluster_arrive();
  cluster_wait();
}
