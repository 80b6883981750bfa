// The producer arrives before it writes.
// EXPECT shared memory race | uninitialised read
// LAUNCH block=64
// ARCH sm_90a
#include "broken/ptx/hopper.cuh"

extern "C" __global__ void broken(const u32* in, u32* out) {
  __shared__ u64 bar;
  __shared__ u32 box[32];
  if (threadIdx.x == 0) init(bar, 32);
  __syncthreads();
  if (threadIdx.x < 32) {
    arrive(bar);
    box[threadIdx.x] = in[threadIdx.x];  // FAULT
  } else {
    wait(bar, 0);
    out[threadIdx.x] = box[threadIdx.x ^ 33];  // FAULT
  }
}
