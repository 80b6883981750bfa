// At the edge of the tensor the kernel does not expect the bytes outside, half of the box's 1024,
// though they are counted.
// EXPECT deadlock
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
  if (threadIdx.x == 0) {
    expect(bar, 512);
    load_box(tile, map, 0, 124, bar);
  }
  wait(bar, 0);  // FAULT
  out[threadIdx.x] = tile[threadIdx.x];
}
