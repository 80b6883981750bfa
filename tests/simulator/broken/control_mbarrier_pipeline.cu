// Two stages, with the waits and arrivals that they need and no more.
// EXPECT nothing
// LAUNCH grid=2 block=96
// ARCH sm_90a
#include "broken/ptx/hopper.cuh"

extern "C" __global__ void broken(const u32* in, u32* out) {
  __shared__ u64 full[2], empty[2];
  __shared__ u32 box[2][32];
  if (threadIdx.x == 0) {
    for (int i = 0; i < 2; ++i) {
      init(full[i], 32);
      init(empty[i], 2);
    }
  }
  __syncthreads();
  u32 total = 0;
#pragma unroll 1
  for (u32 tile = 0; tile < 13; ++tile) {
    const u32 stage = tile & 1;
    const u32 parity = tile / 2 & 1;
    if (threadIdx.x < 32) {
      wait(empty[stage], parity ^ 1);
      box[stage][threadIdx.x] = in[tile * 32 + threadIdx.x];
      arrive(full[stage]);
    } else {
      while (!test(full[stage], parity)) {
      }
      total = total * 3 + box[stage][threadIdx.x & 31 ^ 5];
      __syncwarp();
      if (elect()) arrive(empty[stage]);
    }
  }
  out[blockIdx.x * 96 + threadIdx.x] = total;
}
