// New mbarriers, and a barrier of the cluster whose arrivals are relaxed: fence.mbarrier_init is
// missing, so nothing makes them known.
// EXPECT shared memory race | missing fence
// LAUNCH grid=2 block=64
// ARCH sm_90a
#include "broken/ptx/hopper.cuh"

extern "C" __global__ void __cluster_dims__(2) broken(const u32* in, u32* out) {
  __shared__ alignas(128) u32 tile[64];
  __shared__ u64 bar;
  if (threadIdx.x == 0) init(bar, 1);
  asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory");
  asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
  if (threadIdx.x == 32) {
    expect(bar, 256);  // FAULT
    if (blockIdx.x == 0) load_for(tile, in, 256, bar, 3);  // FAULT
  }
  wait(bar, 0);  // FAULT
  out[threadIdx.x + blockIdx.x * 64] = tile[threadIdx.x];
  asm volatile("barrier.cluster.arrive.aligned;" ::: "memory");
  asm volatile("barrier.cluster.wait.aligned;" ::: "memory");
}
