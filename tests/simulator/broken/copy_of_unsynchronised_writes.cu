// A warp copies asynchronously from global memory what another wrote, with no barrier in between.
// EXPECT global memory race | uninitialised read
// LAUNCH block=64
#include "broken/ptx/hopper.cuh"

extern "C" __global__ void broken(const u32* in, u32* out) {
  __shared__ alignas(16) u32 tile[256];
  out[threadIdx.x] = in[threadIdx.x] + 1;  // FAULT
  __syncwarp();
  if (threadIdx.x < 16) copy_async(&tile[4 * threadIdx.x], out + 4 * threadIdx.x);  // FAULT
  asm volatile("cp.async.wait_all;" ::: "memory");
  __syncthreads();
  out[128 + threadIdx.x] = tile[threadIdx.x];
}
