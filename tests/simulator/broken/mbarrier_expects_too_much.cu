// An mbarrier counts to 2^20 - 1 bytes, and two arrivals expect 16 more.
// EXPECT barrier misuse
// ARCH sm_90a
#include "broken/ptx/hopper.cuh"

extern "C" __global__ void broken(const u32* in, u32* out) {
  __shared__ u64 bar;
  if (threadIdx.x == 0) {
    init(bar, 3);
    expect(bar, (1 << 20) - 16);
    expect(bar, 32);  // FAULT
  }
  __syncthreads();
  out[threadIdx.x] = in[threadIdx.x];
}
