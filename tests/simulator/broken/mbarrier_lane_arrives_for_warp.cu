// One lane says that the stage is empty before the others have read it.
// EXPECT shared memory race
// LAUNCH block=64
// ARCH sm_90a
#include "broken/ptx/hopper.cuh"

extern "C" __global__ void broken(const u32* in, u32* out) {
  __shared__ u64 full, empty;
  __shared__ u32 box[32];
  if (threadIdx.x == 0) {
    init(full, 32);
    init(empty, 1);
  }
  __syncthreads();
  for (u32 tile = 0; tile < 5; ++tile) {
    if (threadIdx.x < 32) {
      wait(empty, (tile & 1) ^ 1);
      box[threadIdx.x] = in[tile * 32 + threadIdx.x];  // FAULT
      arrive(full);
    } else {
      wait(full, tile & 1);
      out[tile * 64 + threadIdx.x] = box[threadIdx.x ^ 33];  // FAULT
      if (threadIdx.x == 32) arrive(empty);
    }
  }
}
