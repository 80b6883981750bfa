// What a CTA wrote to global memory before it arrived at another one's mbarrier is read behind a
// wait in the scope of the CTA alone.
// EXPECT global memory race
// PROVEN nothing
// LAUNCH grid=2 block=32
// ARCH sm_90a
#include "broken/ptx/hopper.cuh"

extern "C" __global__ void __cluster_dims__(2) broken(const u32* in, u32* out) {
  hand_over<wait>(const_cast<u32*>(in), out);  // FAULT
}
