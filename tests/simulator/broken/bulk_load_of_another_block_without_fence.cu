// The last block loads with a bulk copy what all have stored, and the kernel has no fence of the asynchronous
// proxy for global memory.
// EXPECT missing fence
// LAUNCH grid=2 block=64
// ARCH sm_90a
#include "broken/ptx/hopper.cuh"

__device__ u32 ticket;

extern "C" __global__ void broken(const u32* in, u32* out) {
  __shared__ alignas(128) u32 tile[128];
  __shared__ u64 bar;
  __shared__ bool last;
  if (threadIdx.x == 0) {
    init(bar, 1);
    fence_init();
  }
  out[blockIdx.x * 64 + threadIdx.x] = in[threadIdx.x] + 1;
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) {
    last = atomicAdd(&ticket, 1) == 1;
    __threadfence();
  }
  __syncthreads();
  if (!last) return;
  if (threadIdx.x == 0) {
    ticket = 0;
    expect(bar, 512);
    load(tile, out, 512, bar);  // FAULT
  }
  wait(bar, 0);
  out[128 + threadIdx.x] = tile[threadIdx.x] + tile[64 + threadIdx.x];
}
