// Each thread copies with cp.async and lets the copies arrive at an mbarrier when they have landed.
// Who waits for the mbarrier may read what others copied.
// EXPECT nothing
// LAUNCH block=128
#include "broken/ptx/hopper.cuh"

extern "C" __global__ void broken(const u32* in, u32* out) {
  __shared__ alignas(16) u32 tile[2][512];
  __shared__ u64 full[2];
  if (threadIdx.x < 2) init(full[threadIdx.x], threadIdx.x == 0 ? 128 : 1);
  __syncthreads();
  for (u32 stage = 0; stage < 2; ++stage) {
    copy_async(&tile[stage][4 * threadIdx.x], in + 512 * stage + 4 * threadIdx.x);
  }
  copies_arrive(full[0]);
  // The second mbarrier expects one arrival of its own, and one more for each thread that asks.
  copies_arrive_beside(full[1]);
  __syncthreads();
  if (threadIdx.x == 0) arrive(full[1]);
  wait(full[0], 0);
  wait(full[1], 0);
  const u32 other = 511 - threadIdx.x * 4;
  out[threadIdx.x] = tile[0][other] + tile[1][other];
}
