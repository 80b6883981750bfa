// The mask names a third CTA of a cluster of two.
// EXPECT invalid operand
// LAUNCH grid=2
// ARCH sm_90a
#include "broken/ptx/hopper.cuh"

extern "C" __global__ void __cluster_dims__(2) broken(const u32* in, u32* out) {
  __shared__ alignas(128) u32 room[32];
  __shared__ u64 bar;
  if (threadIdx.x == 0) {
    init(bar, 1);
    fence_init();
    expect(bar, 128);
  }
  cluster_arrive();
  cluster_wait();
  if (cluster_rank() == 0 && threadIdx.x == 0) load_for(room, in, 128, bar, 7);  // FAULT
  wait(bar, 0);
  cluster_arrive();
  cluster_wait();
  out[blockIdx.x * 32 + threadIdx.x] = room[threadIdx.x];
}
