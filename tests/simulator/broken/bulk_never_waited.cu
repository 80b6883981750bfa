// The kernel ends with a copy that no thread waited for.
// EXPECT unwaited asynchronous effect
// LAUNCH block=64
// ARCH sm_90a
#include "broken/ptx/hopper.cuh"

extern "C" __global__ void broken(const u32* in, u32* out) {
  __shared__ alignas(128) u32 tile[256];
  __shared__ u64 bar;
  if (threadIdx.x == 0) {
    init(bar, 1);
    fence_init();
    expect(bar, 1024);
    load(tile, in, 1024, bar);  // FAULT
  }
  out[threadIdx.x] = in[threadIdx.x];
}
