// The mask of elect.sync is in a register that is not used again, which may be that of its result.
// EXPECT nothing
// ARCH sm_90a
#include "broken/ptx/hopper.cuh"

extern "C" __global__ void broken(const u32* in, u32* out) {
  u32 leader, elected;
  asm volatile(
      "{\n.reg .pred p;\n.reg .b32 mask;\nmov.u32 mask, %2;\nelect.sync %0|p, mask;\n"
      "selp.u32 %1, 1, 0, p;\n}"
      : "=r"(leader), "=r"(elected)
      : "r"(in[0] - 1));
  out[threadIdx.x] = __popc(__ballot_sync(0xffffffff, elected)) + (leader < 32);
}
