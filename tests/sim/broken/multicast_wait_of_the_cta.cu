// A producer that copies for two CTAs waits for the consumers of both, but in the scope of its own
// CTA: what those of the other have read, it may overwrite too early.
// EXPECT shared memory race | access to bytes in flight
// LAUNCH grid=2 block=96
// ARCH sm_90a
#include "broken/ptx/hopper.cuh"

extern "C" __global__ void __cluster_dims__(2) broken(const u32* in, u32* out) {
  copy_for_both<wait>(in, out);  // FAULT
}
