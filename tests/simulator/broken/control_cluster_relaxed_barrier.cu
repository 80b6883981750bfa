// New mbarriers are made known to the cluster by fence.mbarrier_init and a barrier whose arrivals are
// relaxed, which is what that fence is for.
// EXPECT nothing
// LAUNCH grid=2 block=64
// ARCH sm_90a
#include "broken/ptx/hopper.cuh"

extern "C" __global__ void __cluster_dims__(2) broken(const u32* in, u32* out) {
  __shared__ alignas(128) u32 tile[64];
  __shared__ u64 bar;
  if (threadIdx.x == 0) {
    init(bar, 1);
    fence_init();
  }
  asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory");
  asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
  if (threadIdx.x == 32) {
    expect(bar, 256);
    if (blockIdx.x == 0) load_for(tile, in, 256, bar, 3);
  }
  wait(bar, 0);
  out[threadIdx.x + blockIdx.x * 64] = tile[threadIdx.x];
  asm volatile("barrier.cluster.arrive.aligned;" ::: "memory");
  asm volatile("barrier.cluster.wait.aligned;" ::: "memory");
}
