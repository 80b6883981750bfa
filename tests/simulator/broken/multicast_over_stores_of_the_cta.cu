// Consumers write into a stage before they free it in the scope of their own CTA. That does not
// order the copy of the other CTA behind their writes.
// EXPECT shared memory race | missing fence
// PROVEN nothing
// LAUNCH grid=2 block=96
// ARCH sm_90a
#include "broken/ptx/hopper.cuh"

extern "C" __global__ void __cluster_dims__(2) broken(const u32* in, u32* out) {
  copy_for_both<wait_cluster, arrive_remote_of_cta, true>(in, out);  // FAULT
}
