// A thread waits with a state of two phases ago.
// EXPECT barrier misuse
// ARCH sm_90a
#include "broken/ptx/hopper.cuh"

extern "C" __global__ void broken(const u32* in, u32* out) {
  __shared__ u64 bar;
  if (threadIdx.x == 0) init(bar, 32);
  __syncthreads();
  const u64 first = arrive_for_state(bar);
  wait(bar, 0);
  arrive(bar);
  wait(bar, 1);
  out[threadIdx.x] = test_state(bar, first) ? in[threadIdx.x] : 0;  // FAULT
}
