// One thread copies tiles into three stages; two warps read them, and their sums go out by bulk
// stores from two buffers in turn.
// EXPECT nothing
// LAUNCH grid=2 block=96
// ARCH sm_90a
#include "broken/ptx/hopper.cuh"

extern "C" __global__ void broken(const u32* in, u32* out) {
  __shared__ alignas(128) u32 stages[3][64];
  __shared__ alignas(128) u32 staging[2][64];
  __shared__ u64 full[3], empty[3];
  if (threadIdx.x == 0) {
    for (int i = 0; i < 3; ++i) {
      init(full[i], 1);
      init(empty[i], 2);
    }
    fence_init();
  }
  __syncthreads();
  const u32 thread = threadIdx.x - 32;
  u32 total = 0;
#pragma unroll 1
  for (u32 tile = 0; tile < 11; ++tile) {
    const u32 stage = tile % 3;
    const u32 parity = tile / 3 & 1;
    if (threadIdx.x < 32) {
      if (!elect()) continue;
      wait(empty[stage], parity ^ 1);
      expect(full[stage], 256);
      load(stages[stage], in + 64 * tile, 256, full[stage]);
      continue;
    }
    wait(full[stage], parity);
    total = total * 3 + stages[stage][thread ^ 37];
    __syncwarp();
    if (elect()) arrive(empty[stage]);
    u32* buffer = staging[tile & 1];
    if (thread == 0) wait_stores_read<1>();
    sync_some<64>(1);
    buffer[thread] = total;
    fence_async();
    sync_some<64>(1);
    if (thread == 0) {
      store(out + (blockIdx.x * 11 + tile) * 64, buffer, 256);
      commit_stores();
    }
  }
  if (thread == 0) wait_stores_read<0>();
}
