// A warp arrives at a barrier and then waits at it, and is both of the warps that the barrier is for.
// Where arrivals count, and not warps, that completes it. FlashAttention-3 hands turns over so.
// EXPECT barrier misuse
// PROVEN nothing
// LAUNCH block=64
// ARCH sm_90a
#include "broken/ptx/hopper.cuh"

extern "C" __global__ void broken(const u32* in, u32* out) {
  if (threadIdx.x < 32) {
    asm volatile("bar.arrive 1, 64;" ::: "memory");
    sync_some<64>(1);  // FAULT
  }
  out[threadIdx.x] = in[threadIdx.x];
}
