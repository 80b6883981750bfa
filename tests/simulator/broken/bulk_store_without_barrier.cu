// The staged tile is stored by a thread that does not wait for the others.
// EXPECT shared memory race | uninitialised read
// LAUNCH block=64
// ARCH sm_90a
#include "broken/ptx/hopper.cuh"

extern "C" __global__ void broken(const u32* in, u32* out) {
  __shared__ alignas(128) u32 tile[64];
  tile[threadIdx.x] = in[threadIdx.x];  // FAULT
  fence_async();
  if (threadIdx.x == 0) {
    store(out, tile, 256);  // FAULT
    commit_stores();
    wait_stores_read<0>();
  }
}
