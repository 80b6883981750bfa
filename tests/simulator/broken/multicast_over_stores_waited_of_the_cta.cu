// Consumers write into a stage and free it in the scope of the cluster, but the copies of the other
// CTA wait in the scope of their own.
// EXPECT shared memory race | missing fence
// PROVEN nothing
// LAUNCH grid=2 block=96
// ARCH sm_90a
#include "broken/ptx/hopper.cuh"

extern "C" __global__ void __cluster_dims__(2) broken(const u32* in, u32* out) {
  copy_for_both<wait, arrive_remote, true>(in, out);  // FAULT
}
