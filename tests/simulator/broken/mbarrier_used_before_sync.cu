// There is no barrier between the initialisation of the mbarrier and its users.
// EXPECT shared memory race | barrier misuse
// LAUNCH block=64
// ARCH sm_90a
#include "broken/ptx/hopper.cuh"

extern "C" __global__ void broken(const u32* in, u32* out) {
  __shared__ u64 bar;
  if (threadIdx.x == 0) init(bar, 64);
  arrive(bar);  // FAULT
  wait(bar, 0);
  out[threadIdx.x] = in[threadIdx.x];
}
