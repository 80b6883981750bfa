// A bulk copy overwrites in global memory what another warp has yet to read.
// EXPECT global memory race | access to bytes in flight
// LAUNCH block=64
// ARCH sm_90a
#include "broken/ptx/hopper.cuh"

extern "C" __global__ void broken(const u32* in, u32* out) {
  __shared__ alignas(128) u32 tile[64];
  out[threadIdx.x] = in[threadIdx.x] + 2;
  tile[threadIdx.x] = in[threadIdx.x] + 1;
  fence_async();
  fence_async_global();
  __syncthreads();
  if (threadIdx.x >= 32) out[64 + threadIdx.x] = out[threadIdx.x];  // FAULT
  if (threadIdx.x == 0) {
    store(out, tile, 256);  // FAULT
    commit_stores();
    wait_stores<0>();
  }
}
