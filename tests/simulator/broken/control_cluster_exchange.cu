// Two CTAs read each other's words, and neither leaves before the other has.
// EXPECT nothing
// LAUNCH grid=4 block=64
// ARCH sm_90a
#include "broken/ptx/hopper.cuh"

extern "C" __global__ void __cluster_dims__(2) broken(const u32* in, u32* out) {
  __shared__ u32 box[64];
  u32 total = 0;
#pragma unroll 1
  for (u32 i = 0; i < 4; ++i) {
    box[threadIdx.x] = in[i * 128 + blockIdx.x * 64 + threadIdx.x];
    cluster_arrive();
    cluster_wait();
    total = total * 3 + load_remote(remote(&box[threadIdx.x ^ 40], cluster_rank() ^ 1));
    cluster_arrive();
    cluster_wait();
  }
  out[blockIdx.x * 64 + threadIdx.x] = total;
}
