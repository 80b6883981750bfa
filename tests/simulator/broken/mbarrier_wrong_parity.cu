// The consumer waits for the phase after the one that ends.
// EXPECT deadlock
// LAUNCH block=64
// ARCH sm_90a
#include "broken/ptx/hopper.cuh"

extern "C" __global__ void broken(const u32* in, u32* out) {
  __shared__ u64 bar;
  __shared__ u32 box[32];
  if (threadIdx.x == 0) init(bar, 32);
  __syncthreads();
  if (threadIdx.x < 32) {
    box[threadIdx.x] = in[threadIdx.x];
    arrive(bar);
  } else {
    wait(bar, 0);
    wait(bar, 1);  // FAULT
    out[threadIdx.x] = box[threadIdx.x ^ 33];
  }
}
