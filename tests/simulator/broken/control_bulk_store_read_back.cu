// A thread reads what its bulk copy has stored, after the wait for it.
// EXPECT nothing
// LAUNCH block=64
// ARCH sm_90a
#include "broken/ptx/hopper.cuh"

extern "C" __global__ void broken(const u32* in, u32* out) {
  __shared__ alignas(128) u32 tile[64];
  tile[threadIdx.x] = in[threadIdx.x];
  fence_async();
  __syncthreads();
  if (threadIdx.x == 0) {
    store(out, tile, 256);
    commit_stores();
    wait_stores<0>();
    out[64] = out[3];
    wait_stores<0>();
  }
}
