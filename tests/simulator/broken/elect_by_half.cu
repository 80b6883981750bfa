// Half of a warp elects for all of it, while the others wait somewhere else.
// EXPECT divergent barrier | deadlock
// ARCH sm_90a
#include "broken/ptx/hopper.cuh"

extern "C" __global__ void broken(const u32* in, u32* out) {
  u32 value = in[threadIdx.x];
  if (value & 1) {
    if (elect()) value += 7;  // FAULT
    out[threadIdx.x] = value;
  } else {
    __syncwarp(0xffffffff);  // FAULT
    out[threadIdx.x] = value + 1;
  }
}
