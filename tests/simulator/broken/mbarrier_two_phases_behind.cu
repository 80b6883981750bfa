// A warp waits for phase 0 when phases 0 and 1 are over. The parity then means phase 2, which never
// ends.
// EXPECT deadlock
// LAUNCH block=64
// ARCH sm_90a
#include "broken/ptx/hopper.cuh"

extern "C" __global__ void broken(const u32* in, u32* out) {
  __shared__ u64 bar, later;
  if (threadIdx.x == 0) {
    init(bar, 1);
    init(later, 1);
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    arrive(bar);
    arrive(bar);
    arrive(later);
  }
  if (threadIdx.x >= 32) {
    wait(later, 0);
    wait(bar, 0);  // FAULT
  }
  out[threadIdx.x] = in[threadIdx.x];
}
