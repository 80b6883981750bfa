// Consumers free stages by arrivals that order nothing, so the other CTA's copies may overwrite
// what they have not read yet.
// EXPECT shared memory race | access to bytes in flight
// LAUNCH grid=2 block=96
// ARCH sm_90a
#include "broken/ptx/hopper.cuh"

extern "C" __global__ void __cluster_dims__(2) broken(const u32* in, u32* out) {
  copy_for_both<wait_cluster, arrive_remote_relaxed>(in, out);  // FAULT
}
