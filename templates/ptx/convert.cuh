#ifndef ANNULUS_PTX_CONVERT_CUH_
#define ANNULUS_PTX_CONVERT_CUH_

// Two fp32 values to two 16-bit values in one register, rounded to nearest even; `low` goes to the
// lower half, which the instruction wants as its second source. And back.

namespace annulus::ptx {

// cvt.rn.bf16x2.f32: PTX 7.0, sm_80.
__device__ __forceinline__ unsigned pack_bf16(float low, float high) {
  unsigned packed;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(packed) : "f"(high), "f"(low));
  return packed;
}

// cvt.rn.f16x2.f32: PTX 7.0, sm_80.
__device__ __forceinline__ unsigned pack_f16(float low, float high) {
  unsigned packed;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(packed) : "f"(high), "f"(low));
  return packed;
}

// cvt.f32.f16: PTX 1.0, any architecture. Both halves of a register, without loss.
__device__ __forceinline__ void unpack_f16(float& low, float& high, unsigned packed) {
  asm("{\n"
      "  .reg .b16 lower, upper;\n"
      "  mov.b32 {lower, upper}, %2;\n"
      "  cvt.f32.f16 %0, lower;\n"
      "  cvt.f32.f16 %1, upper;\n"
      "}"
      : "=f"(low), "=f"(high)
      : "r"(packed));
}

}  // namespace annulus::ptx

#endif  // ANNULUS_PTX_CONVERT_CUH_
