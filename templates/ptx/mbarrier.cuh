#ifndef ANNULUS_PTX_MBARRIER_CUH_
#define ANNULUS_PTX_MBARRIER_CUH_

// Barriers in shared memory that count arrivals and bytes. A phase ends when both counts are zero;
// the next one begins with the initial count of arrivals. PTX ISA 9.0, 9.7.13.15.
//
// Phases are distinguished by their parity: a fresh barrier is in phase 0, so waiting for parity 0
// waits for the first phase to end, and waiting for parity 1 returns at once.
//
// A barrier may count arrivals from all CTAs of a cluster. Arrivals and waits have the scope of one
// CTA: they order reads that ended before the arrival, so a copy may overwrite the memory that was
// read, but they do not make writes visible to another CTA. CUTLASS releases buffers the same way.
// At the scope of the cluster, ptxas 13.0 puts a fence of the device (MEMBAR.ALL.GPU) before each
// arrival, and each wait would empty the L1 cache.

#include "ptx/variants.cuh"

namespace annulus::ptx {

enum : int { kBarrierBytes = 8 };

// mbarrier.init: PTX 7.0, sm_80. One thread calls it, before all others use the barrier.
__device__ __forceinline__ void init_barrier(unsigned barrier, unsigned arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals) : "memory");
}

// fence.mbarrier_init: PTX 8.0, sm_90. Makes the inits of this thread visible to asynchronous
// copies. A barrier of the CTA must follow.
__device__ __forceinline__ void publish_barriers() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

// mbarrier.arrive: PTX 7.0, sm_80.
__device__ __forceinline__ void arrive(unsigned barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}

// mapa and mbarrier.arrive: PTX 8.0, sm_90. Arrives at the barrier at the offset `barrier` in the
// CTA of rank `rank` of the cluster, which may be this CTA. It orders reads only (see above).
__device__ __forceinline__ void arrive_at(unsigned barrier, unsigned rank) {
  if constexpr (kReleaseToCluster) {
    asm volatile(
        "{\n.reg .b32 place;\n"
        "mapa.shared::cluster.u32 place, %0, %1;\n"
        "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [place];\n}" ::"r"(barrier),
        "r"(rank)
        : "memory");
    return;
  }
  asm volatile(
      "{\n.reg .b32 place;\n"
      "mapa.shared::cluster.u32 place, %0, %1;\n"
      "mbarrier.arrive.shared::cluster.b64 _, [place];\n}" ::"r"(barrier),
      "r"(rank)
      : "memory");
}

// mbarrier.arrive.expect_tx: PTX 8.0, sm_90. Arrives, and adds `bytes` to the bytes that the phase
// expects. It is called before this CTA starts the copies of these bytes. Bytes from another CTA
// may arrive earlier, since the phase cannot end without this arrival.
__device__ __forceinline__ void arrive_expecting(unsigned barrier, unsigned bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes)
               : "memory");
}

// mbarrier.try_wait.parity: PTX 7.8, sm_90. Sleeps until the phase of that parity has ended.
__device__ __forceinline__ void wait(unsigned barrier, unsigned parity) {
  unsigned ended;
  [[maybe_unused]] unsigned tries = 0;
  do {
    asm volatile(
        "{\n.reg .pred ended;\n"
        "mbarrier.try_wait.parity.shared::cta.b64 ended, [%1], %2;\n"
        "selp.u32 %0, 1, 0, ended;\n}"
        : "=r"(ended)
        : "r"(barrier), "r"(parity)
        : "memory");
    if constexpr (kTrapLateWaits) {
      if (++tries == 1u << 26) asm volatile("trap;");
    }
  } while (ended == 0);
}

}  // namespace annulus::ptx

#endif  // ANNULUS_PTX_MBARRIER_CUH_
