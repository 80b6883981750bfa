// A warp copies asynchronously from global memory what another wrote before a barrier.
// EXPECT nothing
// LAUNCH block=64
#include "broken/ptx/hopper.cuh"

extern "C" __global__ void broken(const u32* in, u32* out) {
  __shared__ alignas(16) u32 tile[256];
  out[threadIdx.x] = in[threadIdx.x] + 1;
  __syncthreads();
  if (threadIdx.x < 16) copy_async(&tile[4 * threadIdx.x], out + 4 * threadIdx.x);
  asm volatile("cp.async.wait_all;" ::: "memory");
  __syncthreads();
  out[128 + threadIdx.x] = tile[threadIdx.x];
}
