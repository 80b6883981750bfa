// Three warps arrive at a barrier for two, and the third waits for another that never comes.
// EXPECT barrier misuse | deadlock
// LAUNCH block=96
// ARCH sm_90a
#include "broken/ptx/hopper.cuh"

extern "C" __global__ void broken(const u32* in, u32* out) {
  sync_some<64>(2);  // FAULT
  out[threadIdx.x] = in[threadIdx.x];
}
