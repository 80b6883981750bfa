// Three warpgroups want more registers than the CTA was given.
// EXPECT deadlock
// LAUNCH block=384
// ARCH sm_90a
#include "broken/ptx/hopper.cuh"

extern "C" __global__ void __launch_bounds__(384, 1) broken(const u32* in, u32* out) {
  if (threadIdx.x < 128) {
    fewer_registers<40>();
  } else {
    more_registers<240>();  // FAULT
  }
  out[threadIdx.x] = in[threadIdx.x];
}
