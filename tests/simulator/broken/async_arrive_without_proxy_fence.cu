// The operands of a product are copied with cp.async, whose copies arrive at an mbarrier, and no
// proxy fence follows the wait for it (FlashAttention-3 does so where it gathers pages of keys).
// EXPECT missing fence
// PROVEN nothing
// LAUNCH block=128
// ARCH sm_90a
#include "broken/ptx/hopper.cuh"

extern "C" __global__ void broken(const u32* in, float* out) {
  __shared__ alignas(1024) u32 tile[80 * 32];
  __shared__ u64 full;
  if (threadIdx.x == 0) init(full, 128);
  __syncthreads();
  for (u32 i = threadIdx.x; i < 80 * 8; i += 128) copy_async(tile + 4 * i, in + 4 * i);
  copies_arrive(full);
  wait(full, 0);
  out[threadIdx.x] = product(describe(tile), describe(tile + 64 * 32));  // FAULT
}
