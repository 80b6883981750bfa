// A warp that has arrived at a barrier arrives there again before the barrier is complete, which is
// undefined.
// EXPECT barrier misuse | deadlock
// PROVEN deadlock
// LAUNCH block=96
// ARCH sm_90a
#include "broken/ptx/hopper.cuh"

extern "C" __global__ void broken(const u32* in, u32* out) {
  if (threadIdx.x < 32) {
    asm volatile("bar.arrive 1, 96;" ::: "memory");
    sync_some<96>(1);  // FAULT
  } else {
    sync_some<96>(1);  // FAULT
  }
  out[threadIdx.x] = in[threadIdx.x];
}
