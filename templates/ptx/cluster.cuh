#ifndef ANNULUS_PTX_CLUSTER_CUH_
#define ANNULUS_PTX_CLUSTER_CUH_

// CTAs of a cluster run at the same time on multiprocessors that reach each other's shared memory.
// PTX ISA 9.0, 10.1 and 9.7.13.4.

namespace annulus::ptx {

// %cluster_ctarank: PTX 7.8, sm_90. Volatile, so that the compiler reads it again rather than keeps
// it in a register, of which a producer has few.
__device__ __forceinline__ unsigned cluster_rank() {
  unsigned rank;
  asm volatile("mov.u32 %0, %cluster_ctarank;" : "=r"(rank));
  return rank;
}

// barrier.cluster: PTX 7.8, sm_90. By all threads of all CTAs that have not exited; what they wrote
// before it is visible after it.
__device__ __forceinline__ void sync_cluster() {
  asm volatile("barrier.cluster.arrive.release;\nbarrier.cluster.wait.acquire;" ::: "memory");
}

}  // namespace annulus::ptx

#endif  // ANNULUS_PTX_CLUSTER_CUH_
