// Two CTAs of a cluster, of which each copies half of every tile for both: a stage is free when the
// consumers of both have said so, and neither leaves while the other may still write.
// EXPECT nothing
// LAUNCH grid=2 block=96
// ARCH sm_90a
#include "broken/ptx/hopper.cuh"

extern "C" __global__ void __cluster_dims__(2) broken(const u32* in, u32* out) {
  __shared__ alignas(128) u32 stages[2][64];
  __shared__ u64 full[2], empty[2];
  const u32 rank = cluster_rank();
  if (threadIdx.x == 0) {
    for (int i = 0; i < 2; ++i) {
      init(full[i], 1);
      init(empty[i], 4);  // two warps of two CTAs
    }
    fence_init();
  }
  cluster_arrive();
  cluster_wait();
  if (threadIdx.x < 32) {
    if (elect()) {
#pragma unroll 1
      for (u32 tile = 0; tile < 7; ++tile) {
        const u32 stage = tile & 1;
        wait_cluster(empty[stage], tile / 2 & 1 ^ 1);
        expect(full[stage], 256);
        load_for(&stages[stage][rank * 32], in + tile * 64 + rank * 32, 128, full[stage], 3);
      }
    }
    __syncwarp();
  } else {
    u32 total = 0;
#pragma unroll 1
    for (u32 tile = 0; tile < 7; ++tile) {
      const u32 stage = tile & 1;
      wait(full[stage], tile / 2 & 1);
      total = total * 3 + stages[stage][threadIdx.x - 32];
      __syncwarp();
      if (threadIdx.x % 32 < 2) arrive_remote(remote(&empty[stage], threadIdx.x % 32));
    }
    out[rank * 64 + threadIdx.x - 32] = total;
  }
  cluster_arrive();
  cluster_wait();
}
