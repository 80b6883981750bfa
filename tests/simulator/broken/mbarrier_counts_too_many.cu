// The mbarrier is initialised for all lanes of the consumers, but one lane of each warp arrives.
// EXPECT deadlock
// LAUNCH block=96
// ARCH sm_90a
#include "broken/ptx/hopper.cuh"

extern "C" __global__ void broken(const u32* in, u32* out) {
  __shared__ u64 full, empty;
  __shared__ u32 box[32];
  if (threadIdx.x == 0) {
    init(full, 32);
    init(empty, 64);
  }
  __syncthreads();
  for (u32 tile = 0; tile < 3; ++tile) {
    if (threadIdx.x < 32) {
      wait(empty, (tile & 1) ^ 1);  // FAULT
      box[threadIdx.x] = in[tile * 32 + threadIdx.x];
      arrive(full);
    } else {
      wait(full, tile & 1);  // FAULT
      out[tile * 96 + threadIdx.x] = box[threadIdx.x & 31];
      __syncwarp();
      if (threadIdx.x % 32 == 0) arrive(empty);
    }
  }
}
