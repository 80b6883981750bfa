// The largest counts, bytes that arrive before they are expected, and an mbarrier that is
// initialised where another one was invalidated.
// EXPECT nothing
// ARCH sm_90a
#include "broken/ptx/hopper.cuh"

extern "C" __global__ void broken(const u32* in, u32* out) {
  __shared__ u64 bar;
  if (threadIdx.x == 0) {
    init(bar, (1 << 20) - 1);
    arrive(bar, (1 << 20) - 2);
    complete(bar, (1 << 20) - 1);
    expect(bar, (1 << 20) - 1);
    wait(bar, 0);
    invalidate(bar);
    init(bar, 2);
    arrive_without_completing(bar);
    arrive(bar);
  }
  __syncthreads();
  wait(bar, 0);
  out[threadIdx.x] = in[threadIdx.x];
}
