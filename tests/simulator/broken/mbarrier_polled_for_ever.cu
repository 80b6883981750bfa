// The consumer tests for a phase that never ends, by tests that never suspend.
// EXPECT deadlock
// LAUNCH block=64
// ARCH sm_90a
#include "broken/ptx/hopper.cuh"

extern "C" __global__ void broken(const u32* in, u32* out) {
  __shared__ u64 bar;
  if (threadIdx.x == 0) init(bar, 33);
  __syncthreads();
  if (threadIdx.x < 32) {
    arrive(bar);
  } else {
    while (!test(bar, 0)) {  // FAULT
    }
    out[threadIdx.x] = in[threadIdx.x];
  }
}
