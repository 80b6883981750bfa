// The staging buffer is filled again before the store has read it.
// EXPECT shared memory race
// LAUNCH block=64
// ARCH sm_90a
#include "broken/ptx/hopper.cuh"

extern "C" __global__ void broken(const u32* in, u32* out) {
  __shared__ alignas(128) u32 tile[64];
  for (u32 i = 0; i < 3; ++i) {
    tile[threadIdx.x] = in[i * 64 + threadIdx.x];  // FAULT
    fence_async();
    __syncthreads();
    if (threadIdx.x == 0) {
      store(out + i * 64, tile, 256);
      commit_stores();
    }
    __syncthreads();
  }
  if (threadIdx.x == 0) wait_stores_read<0>();
}
