#ifndef ANNULUS_PTX_WARPGROUP_CUH_
#define ANNULUS_PTX_WARPGROUP_CUH_

// Instructions for the warps of a CTA that do different work (warp specialisation): to move
// registers between warpgroups, barriers of some of the warps, and the choice of one thread of a
// warp.

#include "ptx/variants.cuh"

namespace annulus::ptx {

// setmaxnreg: PTX 8.0, sm_90a. By all warps of a warpgroup. take_registers waits until other
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
// same thread each time, as PTX guarantees for one mask; those who wait for bulk copies rely on
// that.
__device__ __forceinline__ bool elect() {
  unsigned chosen;
  asm volatile(
      "{\n.reg .pred chosen;\n"
      "elect.sync _|chosen, 0xffffffff;\n"
      "selp.u32 %0, 1, 0, chosen;\n}"
      : "=r"(chosen));
  return chosen != 0;
}

// The value, which must be the same in all lanes of the warp, in a register that the compiler knows
// to be uniform.
__device__ __forceinline__ unsigned uniform(unsigned value) {
  return __shfl_sync(0xffffffffu, value, 0);
}

// No effect, sm_90. Keeps the sum, and with it the exponentials that it adds up, above the wait
// that follows. ptxas moves arithmetic below a wait if only registers depend on it, and the tensor
// cores would then run alone. `address` is a word of shared memory that is written only if the sum
// is negative, which sums of exponentials never are.
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
