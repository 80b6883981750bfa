// More bytes than the count holds arrive before they are expected.
// EXPECT barrier misuse
// ARCH sm_90a
#include "broken/ptx/hopper.cuh"

extern "C" __global__ void broken(const u32* in, u32* out) {
  __shared__ u64 bar;
  if (threadIdx.x == 0) {
    init(bar, 1);
    complete(bar, (1 << 20) - 1);
    complete(bar, 1);  // FAULT
  }
  __syncthreads();
  out[threadIdx.x] = in[threadIdx.x];
}
