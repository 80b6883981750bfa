// All lanes of a warp read the tile and wait for a product, and one of them says that the tile is
// free, with no __syncwarp in between. DeepGEMM relies on the wait, which all lanes execute
// together, to have them all past their reads.
// EXPECT shared memory race
// PROVEN nothing
// LAUNCH block=256
// ARCH sm_90a
#include "broken/ptx/hopper.cuh"

extern "C" __global__ void broken(const u32* in, float* out) {
  __shared__ alignas(1024) u32 tile[80 * 32];
  __shared__ u64 full, empty;
  if (threadIdx.x == 0) {
    init(full, 1);
    init(empty, 4);
    fence_init();
  }
  __syncthreads();
  float d[8] = {};
  float scale = 0;
  for (u32 i = 0; i < 3; ++i) {
    if (threadIdx.x < 128) {
      if (threadIdx.x != 0) continue;
      wait(empty, (i & 1) ^ 1);
      expect(full, 80 * 128);
      load(tile, in, 80 * 128, full);  // FAULT
    } else {
      wait(full, i & 1);
      scale += static_cast<float>(tile[threadIdx.x]);
      pin(d);
      fence_registers();
      multiply(d, describe(tile), describe(tile + 64 * 32), true);
      commit_products();
      wait_products<0>();
      pin(d);
      if (threadIdx.x % 32 == 0) arrive(empty);
    }
  }
  if (threadIdx.x >= 128) out[threadIdx.x] = sum(d) + scale;
}
