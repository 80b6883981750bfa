// Boxes reach over every edge of the tensor. All their bytes are counted, with zeros outside.
// EXPECT nothing
// LAUNCH block=64 map=1
// ARCH sm_90a
#include "broken/ptx/hopper.cuh"

extern "C" __global__ void broken(const u32* in, u32* out, const __grid_constant__ TensorMap map) {
  __shared__ alignas(1024) u32 tile[256];
  __shared__ u64 bar;
  if (threadIdx.x == 0) {
    init(bar, 1);
    fence_init();
  }
  __syncthreads();
  u32 total = 0;
#pragma unroll 1
  for (int i = 0; i < 6; ++i) {
    if (threadIdx.x == 0) {
      expect(bar, 1024);
      load_box(tile, map, i * 8 - 20, i * 25 - 4, bar);
    }
    wait(bar, i & 1);
    total = total * 3 + tile[threadIdx.x * 4 + i % 4];
    __syncthreads();
  }
  out[threadIdx.x] = total;
}
