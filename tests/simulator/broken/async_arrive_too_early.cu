// The second copy of each thread comes behind the arrival, which does not wait for it.
// EXPECT access to bytes in flight
// LAUNCH block=64
#include "broken/ptx/hopper.cuh"

extern "C" __global__ void broken(const u32* in, u32* out) {
  __shared__ alignas(16) u32 tile[512];
  __shared__ u64 full;
  if (threadIdx.x == 0) init(full, 64);
  __syncthreads();
  copy_async(&tile[4 * threadIdx.x], in + 4 * threadIdx.x);
  copies_arrive(full);
  copy_async(&tile[256 + 4 * threadIdx.x], in + 256 + 4 * threadIdx.x);
  wait(full, 0);
  out[threadIdx.x] = tile[threadIdx.x] + tile[256 + threadIdx.x];  // FAULT
  asm volatile("cp.async.wait_all;" ::: "memory");
}
