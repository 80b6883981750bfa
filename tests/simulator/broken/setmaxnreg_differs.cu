// The warps of a warpgroup ask for different numbers of registers.
// EXPECT invalid operand
// LAUNCH block=256
// ARCH sm_90a
#include "broken/ptx/hopper.cuh"

extern "C" __global__ void __launch_bounds__(256, 1) broken(const u32* in, u32* out) {
  if (threadIdx.x < 64) {
    fewer_registers<40>();  // FAULT
  } else if (threadIdx.x < 128) {
    fewer_registers<48>();  // FAULT
  } else {
    more_registers<240>();
  }
  out[threadIdx.x] = in[threadIdx.x];
}
