// Consumers give stages back to the producers of both CTAs, but in the scope of their own: the other
// one's producer may overwrite too early what they have read.
// EXPECT shared memory race | access to bytes in flight
// LAUNCH grid=2 block=96
// ARCH sm_90a
#include "broken/ptx/hopper.cuh"

extern "C" __global__ void __cluster_dims__(2) broken(const u32* in, u32* out) {
  copy_for_both<wait_cluster, arrive_remote_of_cta>(in, out);  // FAULT
}
