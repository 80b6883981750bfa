#ifndef ANNULUS_PTX_CONVERT_CUH_
#define ANNULUS_PTX_CONVERT_CUH_

// Conversions of fp32 values to 16-bit or 8-bit values in one register, rounded to nearest even,
// and back from 16 bits. `low` is stored in the lower half, which is the instruction's second
// source.

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

// cvt.rn.satfinite.e4m3x2.f32: PTX 7.8, sm_89. Four values to e4m3, `a` in the lowest byte; values
// beyond 448 become 448.
__device__ __forceinline__ unsigned pack_e4m3(float a, float b, float c, float d) {
  unsigned packed;
  asm("{\n.reg .b16 low, high;\n"
      "cvt.rn.satfinite.e4m3x2.f32 low, %2, %1;\n"
      "cvt.rn.satfinite.e4m3x2.f32 high, %4, %3;\n"
      "mov.b32 %0, {low, high};\n}"
      : "=r"(packed)
      : "f"(a), "f"(b), "f"(c), "f"(d));
  return packed;
}

}  // namespace annulus::ptx

#endif  // ANNULUS_PTX_CONVERT_CUH_
