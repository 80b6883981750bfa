// One warp adds the product and the others subtract it, which is another instruction.
// EXPECT invalid operand
// LAUNCH block=128
// ARCH sm_90a
#include "broken/ptx/hopper.cuh"

#define MULTIPLY(sign)                                                                           \
  asm volatile(                                                                                  \
      "{\n.reg .pred p;\nsetp.ne.b32 p, %10, 0;\n"                                              \
      "wgmma.mma_async.sync.aligned.m64n16k16.f32.bf16.bf16 {%0, %1, %2, %3, %4, %5, %6, %7}, "  \
      "%8, %9, p, " sign ", 1, 0, 0;\n}"                                                         \
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]),      \
        "+f"(d[7])                                                                               \
      : "l"(describe(tile)), "l"(describe(tile + 64 * 32)), "r"(1))

extern "C" __global__ void broken(const u32* in, float* out) {
  __shared__ alignas(1024) u32 tile[80 * 32];
  prepare(tile, in[0]);
  float d[8] = {};
  pin(d);
  fence_registers();
  if (threadIdx.x < 32) {
    MULTIPLY("1");  // FAULT
  } else {
    MULTIPLY("-1");  // FAULT
  }
  commit_products();
  wait_products<0>();
  pin(d);
  out[threadIdx.x] = sum(d);
}
