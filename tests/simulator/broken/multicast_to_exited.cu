// A CTA writes to one of its cluster that has exited.
// EXPECT out of bounds | unwaited asynchronous effect
// LAUNCH grid=2
// ARCH sm_90a
#include "broken/ptx/hopper.cuh"

extern "C" __global__ void __cluster_dims__(2) broken(const u32* in, u32* out) {
  __shared__ alignas(128) u32 room[32];
  __shared__ u64 bar;
  if (threadIdx.x == 0) {
    init(bar, 1);
    fence_init();
  }
  cluster_arrive();
  cluster_wait();
  if (cluster_rank() == 1) return;
  if (threadIdx.x == 0) {
    expect(bar, 128);
    load_for(room, in, 128, bar, 3);  // FAULT
  }
  wait(bar, 0);
  out[threadIdx.x] = room[threadIdx.x];
}
