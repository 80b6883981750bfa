// A box begins at an element that is not at a multiple of 16 bytes in its row.
// EXPECT invalid operand
// LAUNCH map=1
// ARCH sm_90a
#include "broken/ptx/hopper.cuh"

extern "C" __global__ void broken(const u32* in, u32* out, const __grid_constant__ TensorMap map) {
  __shared__ alignas(1024) u32 tile[256];
  __shared__ u64 bar;
  if (threadIdx.x == 0) {
    init(bar, 1);
    fence_init();
    expect(bar, 1024);
    load_box(tile, map, -3, 2, bar);  // FAULT
  }
  __syncthreads();
  wait(bar, 0);
  out[threadIdx.x] = tile[threadIdx.x];
}
