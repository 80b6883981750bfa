// The eight bytes of an mbarrier are read as memory.
// EXPECT barrier misuse
// ARCH sm_90a
#include "broken/ptx/hopper.cuh"

extern "C" __global__ void broken(const u32* in, u64* out) {
  __shared__ u64 bar;
  if (threadIdx.x == 0) init(bar, 32);
  __syncthreads();
  arrive(bar);
  out[threadIdx.x] = *static_cast<volatile u64*>(&bar);  // FAULT
}
