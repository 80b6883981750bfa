// What consumers wrote into a stage, and fenced, comes before the copy of the other CTA where
// arrivals and waits have the scope of the cluster.
// EXPECT nothing
// LAUNCH grid=2 block=96
// ARCH sm_90a
#include "broken/ptx/hopper.cuh"

extern "C" __global__ void __cluster_dims__(2) broken(const u32* in, u32* out) {
  copy_for_both<wait_cluster, arrive_remote, true>(in, out);
}
