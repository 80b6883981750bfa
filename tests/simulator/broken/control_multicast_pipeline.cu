// Two CTAs of a cluster, of which each copies half of every tile for both: a stage is free when the
// consumers of both have said so, and neither leaves while the other may still write.
// EXPECT nothing
// LAUNCH grid=2 block=96
// ARCH sm_90a
#include "broken/ptx/hopper.cuh"

extern "C" __global__ void __cluster_dims__(2) broken(const u32* in, u32* out) {
  copy_for_both<wait_cluster>(in, out);
}
