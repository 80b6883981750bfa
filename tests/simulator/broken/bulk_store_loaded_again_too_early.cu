// A bulk copy loads again what another stored, and its thread has waited only until the source was read.
// EXPECT access to bytes in flight
// LAUNCH block=32
// ARCH sm_90a
#include "broken/ptx/hopper.cuh"

extern "C" __global__ void broken(const u32* in, u32* out) {
  __shared__ alignas(128) u32 tile[64];
  __shared__ u64 bar;
  tile[threadIdx.x] = in[threadIdx.x] + 1;
  tile[32 + threadIdx.x] = in[threadIdx.x] + 1;
  fence_async();
  if (threadIdx.x == 0) {
    init(bar, 1);
    fence_init();
  }
  __syncwarp();
  if (threadIdx.x == 0) {
    store(out, tile, 256);
    commit_stores();
    wait_stores_read<0>();
    expect(bar, 256);
    load(tile, out, 256, bar);  // FAULT
    wait_stores<0>();
  }
  wait(bar, 0);
  out[64 + threadIdx.x] = tile[threadIdx.x];
}
