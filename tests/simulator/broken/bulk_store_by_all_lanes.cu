// All lanes of a warp execute the same bulk store. Each of them is a copy, and nothing orders them;
// CUTLASS does so with tensor stores, and the hardware does them once.
// EXPECT access to bytes in flight
// PROVEN nothing
// LAUNCH block=64
// ARCH sm_90a
#include "broken/ptx/hopper.cuh"

extern "C" __global__ void broken(const u32* in, u32* out) {
  __shared__ alignas(128) u32 tile[64];
  tile[threadIdx.x] = in[threadIdx.x];
  fence_async();
  __syncthreads();
  if (threadIdx.x < 32) {
    store(out, tile, 256);  // FAULT
    commit_stores();
    wait_stores<0>();
  }
}
