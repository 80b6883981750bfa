// Consumers free stages for the producers of both CTAs in the scope of their own CTA, and these
// wait in theirs. No more is needed to know that reads have ended.
// EXPECT nothing
// LAUNCH grid=2 block=96
// ARCH sm_90a
#include "broken/ptx/hopper.cuh"

extern "C" __global__ void __cluster_dims__(2) broken(const u32* in, u32* out) {
  copy_for_both<wait, arrive_remote_of_cta>(in, out);
}
