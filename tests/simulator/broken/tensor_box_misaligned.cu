// A box does not start at a multiple of 128 bytes.
// EXPECT misaligned address
// LAUNCH map=1
// ARCH sm_90a
#include "broken/ptx/hopper.cuh"

extern "C" __global__ void broken(const u32* in, u32* out, const __grid_constant__ TensorMap map) {
  __shared__ alignas(1024) u32 room[10 * 32];
  __shared__ u64 bar;
  if (threadIdx.x == 0) {
    init(bar, 1);
    fence_init();
    expect(bar, 1024);
    load_box(room + 16, map, 0, 0, bar);  // FAULT
  }
  __syncthreads();
  wait(bar, 0);
  out[threadIdx.x] = room[threadIdx.x + 16];
}
