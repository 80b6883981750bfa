#ifndef ANNULUS_PTX_HIDE_CUH_
#define ANNULUS_PTX_HIDE_CUH_

namespace annulus::ptx {

// and.b32, setp and selp, eight times: PTX 1.0, any architecture. An element whose bit in `seen` is
// 0 becomes -inf; the first element's bit is kFirst. They are one statement, which the compiler
// handles as one instruction; eight conditions would be eight blocks of code.
template <int kFirst>
__device__ __forceinline__ void hide_eight(float& x0, float& x1, float& x2, float& x3, float& x4,
                                           float& x5, float& x6, float& x7, unsigned seen) {
  asm("{\n.reg .pred p;\n.reg .b32 t;\n"
      "and.b32 t, %8, %9;\nsetp.eq.s32 p, t, 0;\nselp.f32 %0, 0fFF800000, %0, p;\n"
      "and.b32 t, %8, %10;\nsetp.eq.s32 p, t, 0;\nselp.f32 %1, 0fFF800000, %1, p;\n"
      "and.b32 t, %8, %11;\nsetp.eq.s32 p, t, 0;\nselp.f32 %2, 0fFF800000, %2, p;\n"
      "and.b32 t, %8, %12;\nsetp.eq.s32 p, t, 0;\nselp.f32 %3, 0fFF800000, %3, p;\n"
      "and.b32 t, %8, %13;\nsetp.eq.s32 p, t, 0;\nselp.f32 %4, 0fFF800000, %4, p;\n"
      "and.b32 t, %8, %14;\nsetp.eq.s32 p, t, 0;\nselp.f32 %5, 0fFF800000, %5, p;\n"
      "and.b32 t, %8, %15;\nsetp.eq.s32 p, t, 0;\nselp.f32 %6, 0fFF800000, %6, p;\n"
      "and.b32 t, %8, %16;\nsetp.eq.s32 p, t, 0;\nselp.f32 %7, 0fFF800000, %7, p;\n}"
      : "+f"(x0), "+f"(x1), "+f"(x2), "+f"(x3), "+f"(x4), "+f"(x5), "+f"(x6), "+f"(x7)
      : "r"(seen), "n"(1u << kFirst), "n"(2u << kFirst), "n"(4u << kFirst), "n"(8u << kFirst),
        "n"(16u << kFirst), "n"(32u << kFirst), "n"(64u << kFirst), "n"(128u << kFirst));
}

}  // namespace annulus::ptx

#endif  // ANNULUS_PTX_HIDE_CUH_
