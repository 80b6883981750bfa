// The last block reads what both have stored with bulk copies, after waits and fences.
// EXPECT nothing
// LAUNCH grid=2 block=64
// ARCH sm_90a
#include "broken/ptx/hopper.cuh"

__device__ u32 ticket;

extern "C" __global__ void broken(const u32* in, u32* out) {
  __shared__ alignas(128) u32 tile[64];
  __shared__ bool last;
  tile[threadIdx.x] = in[threadIdx.x];
  fence_async();
  __syncthreads();
  if (threadIdx.x == 0) {
    store(out + blockIdx.x * 64, tile, 256);
    commit_stores();
    wait_stores<0>();
    fence_async_global();
    __threadfence();
    last = atomicAdd(&ticket, 1) == 1;
    __threadfence();
  }
  __syncthreads();
  if (last) out[128 + threadIdx.x] = out[threadIdx.x] + out[64 + threadIdx.x];
  if (last && threadIdx.x == 0) ticket = 0;
  if (threadIdx.x == 0) wait_stores<0>();
}
