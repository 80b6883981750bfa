// setmaxnreg.dec asks for more registers than the warp has.
// EXPECT invalid operand
// LAUNCH block=384
// ARCH sm_90a
#include "broken/ptx/hopper.cuh"

extern "C" __global__ void __launch_bounds__(384, 1) broken(const u32* in, u32* out) {
  fewer_registers<240>();  // FAULT
  out[threadIdx.x] = in[threadIdx.x];
}
