// The producer waits until the stage is empty, but only after it has filled it again.
// EXPECT shared memory race
// LAUNCH block=64
// ARCH sm_90a
#include "broken/ptx/hopper.cuh"

extern "C" __global__ void broken(const u32* in, u32* out) {
  __shared__ u64 full[2], empty[2];
  __shared__ u32 box[2][32];
  if (threadIdx.x == 0) {
    for (u32 stage = 0; stage < 2; ++stage) {
      init(full[stage], 32);
      init(empty[stage], 32);
    }
  }
  __syncthreads();
  for (u32 tile = 0; tile < 6; ++tile) {
    const u32 stage = tile & 1;
    const u32 parity = tile / 2 & 1;
    if (threadIdx.x < 32) {
      box[stage][threadIdx.x] = in[tile * 32 + threadIdx.x];  // FAULT
      wait(empty[stage], parity ^ 1);
      arrive(full[stage]);
    } else {
      wait(full[stage], parity);
      out[tile * 64 + threadIdx.x] = box[stage][threadIdx.x ^ 33];  // FAULT
      arrive(empty[stage]);
    }
  }
}
