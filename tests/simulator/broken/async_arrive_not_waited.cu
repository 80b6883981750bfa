// The copies of a thread arrive at an mbarrier when they have landed, and nobody waits for that.
// EXPECT access to bytes in flight | shared memory race | unwaited asynchronous effect
// LAUNCH block=128
#include "broken/ptx/hopper.cuh"

extern "C" __global__ void broken(const u32* in, u32* out) {
  __shared__ alignas(16) u32 tile[512];
  __shared__ u64 full;
  if (threadIdx.x == 0) init(full, 128);
  __syncthreads();
  copy_async(&tile[4 * threadIdx.x], in + 4 * threadIdx.x);
  copies_arrive(full);
  __syncthreads();
  out[threadIdx.x] = tile[511 - threadIdx.x * 4];  // FAULT
}
