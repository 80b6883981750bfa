// What a CTA wrote to global memory before it arrived at another one's mbarrier is read behind a
// wait in the scope of the CTA alone.
// EXPECT global memory race
// LAUNCH grid=2 block=32
// ARCH sm_90a
#include "broken/ptx/hopper.cuh"

extern "C" __global__ void __cluster_dims__(2) broken(const u32* in, u32* out) {
  __shared__ u64 bar;
  u32* data = const_cast<u32*>(in);
  const u32 rank = cluster_rank();
  if (threadIdx.x == 0) {
    init(bar, 1);
    fence_init();
  }
  cluster_arrive();
  cluster_wait();
  if (rank == 1) {
    data[threadIdx.x] = 5;  // FAULT
    __syncwarp();
    if (threadIdx.x == 0) arrive_remote(remote(&bar, 0));
  } else {
    wait(bar, 0);
    out[threadIdx.x] = data[threadIdx.x];  // FAULT
  }
  cluster_arrive();
  cluster_wait();
}
