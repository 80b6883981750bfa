// A producer and two warpgroups of consumers that take registers over; products of one group are
// under way while the next is issued, from shared memory and from registers; every warp says for
// itself that a stage is free. Several rounds of more tiles than there are stages.
// EXPECT nothing
// LAUNCH grid=2 block=384 shared=24576
// ARCH sm_90a
#include "broken/ptx/hopper.cuh"

extern "C" __global__ void __launch_bounds__(384, 1) broken(const u32* in, float* out) {
  extern __shared__ __align__(1024) u32 stages[];  // [2][80 * 32], in 12 KB each
  __shared__ u64 full[2], empty[2];
  if (threadIdx.x == 0) {
    for (int i = 0; i < 2; ++i) {
      init(full[i], 1);
      init(empty[i], 8);
    }
    fence_init();
  }
  __syncthreads();
  if (threadIdx.x < 128) {
    fewer_registers<24>();
    if (threadIdx.x >= 32 || !elect()) return;
#pragma unroll 1
    for (u32 tile = 0; tile < 14; ++tile) {
      const u32 stage = tile & 1;
      wait(empty[stage], tile / 2 & 1 ^ 1);
      expect(full[stage], 80 * 128);
      load(stages + stage * 3072, in + tile * 64, 80 * 128, full[stage]);
    }
    // So that the CTA does not end before the last copies have been taken.
    wait(empty[0], 14 / 2 & 1 ^ 1);
    wait(empty[1], 14 / 2 & 1 ^ 1);
    return;
  }
  more_registers<240>();
  const bool leader = threadIdx.x % 32 == 0;
  float first[8], second[8] = {};
#pragma unroll 1
  for (u32 tile = 0; tile < 14; ++tile) {
    const u32 stage = tile & 1;
    const u32* a = stages + stage * 3072;
    wait(full[stage], tile / 2 & 1);
    fence_registers();
    multiply(first, describe(a), describe(a + 64 * 32), false);
    multiply(first, describe(a) + 2, describe(a + 64 * 32) + 2, true);
    commit_products();
    wait_products<0>();
    pin(first);
    u32 fragment[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(fragment[i]) : "f"(first[2 * i + 1]), "f"(first[2 * i]));
    }
    pin(second);
    fence_registers();
    multiply(second, fragment, describe(a + 64 * 32), true);
    commit_products();
    wait_products<0>();
    pin(second);
    __syncwarp();
    if (leader) arrive(empty[stage]);
  }
  out[blockIdx.x * 256 + threadIdx.x - 128] = sum(second);
}
