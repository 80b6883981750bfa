#ifndef ANNULUS_PTX_WARPGROUP_CUH_
#define ANNULUS_PTX_WARPGROUP_CUH_

// Instructions for the warps of a CTA that do different work (warp specialisation): moving
// registers between warpgroups, barriers for some of the warps, and selecting one thread of a warp.

#include "ptx/variants.cuh"

namespace annulus::ptx {

// setmaxnreg: PTX 8.0, sm_90a. All warps of a warpgroup call it. take_registers waits until other
// warpgroups have given enough registers up; kCount is a multiple of 8 from 24 to 256.
template <int kCount>
__device__ __forceinline__ void give_registers() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(kCount));
}
template <int kCount>
__device__ __forceinline__ void take_registers() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(kCount));
}

// barrier.sync and barrier.arrive: PTX 6.0, sm_70. The named barrier `id` (1 to 15; 0 is
// __syncthreads) is complete when `threads` threads, a multiple of 32, have arrived.
// announce_threads arrives without waiting.
__device__ __forceinline__ void sync_threads(int id, int threads) {
  asm volatile("barrier.sync %0, %1;" ::"r"(id), "r"(threads) : "memory");
}
__device__ __forceinline__ void announce_threads(int id, int threads) {
  asm volatile("barrier.arrive %0, %1;" ::"r"(id), "r"(threads) : "memory");
}

// elect.sync: PTX 8.0, sm_90. True in one thread of the warp, all of which take part. It is the
// same thread each time, as PTX guarantees for the same mask; code that waits for bulk copies
// relies on that.
__device__ __forceinline__ bool elect() {
  unsigned chosen;
  asm volatile(
      "{\n.reg .pred chosen;\n"
      "elect.sync _|chosen, 0xffffffff;\n"
      "selp.u32 %0, 1, 0, chosen;\n}"
      : "=r"(chosen));
  return chosen != 0;
}

// Returns the value, which must be the same in all lanes of the warp, in a register that the
// compiler treats as uniform.
__device__ __forceinline__ unsigned uniform(unsigned value) {
  return __shfl_sync(0xffffffffu, value, 0);
}

// No effect, sm_90. Keeps the sum, and the exponentials that it adds up, above the following wait.
// ptxas moves arithmetic below a wait if only registers depend on it, and then they would not
// overlap with the tensor cores. `address` is a word of shared memory that is written only if the
// sum is negative, which sums of exponentials never are.
__device__ __forceinline__ void pin(float sum, unsigned address) {
  if constexpr (kNoPin) return;
  asm volatile(
      "{\n.reg .pred never;\n"
      "setp.lt.f32 never, %0, 0f00000000;\n"
      "@never st.shared.f32 [%1], %0;\n}" ::"f"(sum),
      "r"(address)
      : "memory");
}

}  // namespace annulus::ptx

#endif  // ANNULUS_PTX_WARPGROUP_CUH_
