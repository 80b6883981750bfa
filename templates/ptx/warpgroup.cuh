#ifndef ANNULUS_PTX_WARPGROUP_CUH_
#define ANNULUS_PTX_WARPGROUP_CUH_

// What the warps of a CTA that do different work need: registers of their own number, barriers of
// some of the warps, one thread of a warp.

#include "ptx/variants.cuh"

namespace annulus::ptx {

// setmaxnreg: PTX 8.0, sm_90a. By all warps of a warpgroup. take_registers waits until others have
// given enough of them up; kCount is a multiple of 8 from 24 to 256.
template <int kCount>
__device__ __forceinline__ void give_registers() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(kCount));
}
template <int kCount>
__device__ __forceinline__ void take_registers() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(kCount));
}

// barrier.sync and barrier.arrive: PTX 6.0, sm_70. Barrier `id` (1 to 15; 0 is __syncthreads) is
// complete when so many threads, a multiple of 32, have come; the second does not wait for them.
__device__ __forceinline__ void sync_threads(int id, int threads) {
  asm volatile("barrier.sync %0, %1;" ::"r"(id), "r"(threads) : "memory");
}
__device__ __forceinline__ void announce_threads(int id, int threads) {
  asm volatile("barrier.arrive %0, %1;" ::"r"(id), "r"(threads) : "memory");
}

// elect.sync: PTX 8.0, sm_90. True in one thread of a warp, all of which take part.
__device__ __forceinline__ bool elect() {
  unsigned chosen;
  asm volatile(
      "{\n.reg .pred chosen;\n"
      "elect.sync _|chosen, 0xffffffff;\n"
      "selp.u32 %0, 1, 0, chosen;\n}"
      : "=r"(chosen));
  return chosen != 0;
}

// The value, which all lanes of the warp must agree about, in a register that the compiler knows
// to be the same in all of them.
__device__ __forceinline__ unsigned uniform(unsigned value) {
  return __shfl_sync(0xffffffffu, value, 0);
}

// No effect, sm_90. Keeps the sums, and with them the exponentials that they add up, in front of
// the wait that follows: ptxas moves arithmetic below it wherever only registers depend on it, and
// the tensor cores would then run alone. `address` is a word of shared memory that is written only
// if a sum is negative, which sums of exponentials never are.
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
