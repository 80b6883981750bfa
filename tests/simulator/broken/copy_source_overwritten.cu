// A lane overwrites in global memory what a cp.async of another may still read.
// EXPECT access to bytes in flight
// LAUNCH block=32
#include "broken/ptx/hopper.cuh"

extern "C" __global__ void broken(const u32* in, u32* out) {
  __shared__ alignas(16) u32 tile[128];
  for (u32 i = threadIdx.x; i < 128; i += 32) out[i] = in[i];
  __syncwarp();
  copy_async(&tile[4 * threadIdx.x], out + 4 * threadIdx.x);
  out[127 - threadIdx.x] = 7;  // FAULT
  asm volatile("cp.async.wait_all;" ::: "memory");
  __syncwarp();
  out[128 + threadIdx.x] = tile[threadIdx.x];
}
