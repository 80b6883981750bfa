// The next tile is copied over one that may still be read.
// EXPECT shared memory race | access to bytes in flight
// LAUNCH block=64
// ARCH sm_90a
#include "broken/ptx/hopper.cuh"

extern "C" __global__ void broken(const u32* in, u32* out) {
  __shared__ alignas(128) u32 tile[256];
  __shared__ u64 bar;
  if (threadIdx.x == 0) {
    init(bar, 1);
    fence_init();
  }
  __syncthreads();
  for (u32 i = 0; i < 4; ++i) {
    if (threadIdx.x == 0) {
      expect(bar, 1024);
      load(tile, in + 256 * i, 1024, bar);  // FAULT
    }
    wait(bar, i & 1);
    out[i * 64 + threadIdx.x] = tile[threadIdx.x * 4];  // FAULT
  }
}
