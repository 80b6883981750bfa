// Consumers give stages back to the producers of both CTAs in the scope of their own, and those wait
// in theirs: that reads have ended needs no more.
// EXPECT nothing
// LAUNCH grid=2 block=96
// ARCH sm_90a
#include "broken/ptx/hopper.cuh"

extern "C" __global__ void __cluster_dims__(2) broken(const u32* in, u32* out) {
  copy_for_both<wait, arrive_remote_of_cta>(in, out);
}
