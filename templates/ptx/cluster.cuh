#ifndef ANNULUS_PTX_CLUSTER_CUH_
#define ANNULUS_PTX_CLUSTER_CUH_

// CTAs of a cluster run at the same time on multiprocessors that can access each other's shared
// memory. PTX ISA 9.0, 10.1 and 9.7.13.4.

namespace annulus::ptx {

// %cluster_ctarank: PTX 7.8, sm_90. It is volatile, so that the compiler reads it again instead of
// keeping it in a register; a producer has few registers.
__device__ __forceinline__ unsigned cluster_rank() {
  unsigned rank;
  asm volatile("mov.u32 %0, %cluster_ctarank;" : "=r"(rank));
  return rank;
}

// barrier.cluster: PTX 7.8, sm_90. All threads of all CTAs that have not exited call it. Their
// writes before it are visible after it.
__device__ __forceinline__ void sync_cluster() {
  asm volatile("barrier.cluster.arrive.release;\nbarrier.cluster.wait.acquire;" ::: "memory");
}

}  // namespace annulus::ptx

#endif  // ANNULUS_PTX_CLUSTER_CUH_
