#ifndef ANNULUS_TILE_EXACT_MATH_CUH_
#define ANNULUS_TILE_EXACT_MATH_CUH_

// exp2 and log2, made of operations whose rounding IEEE 754 defines exactly, so that the chosen
// blocks are the same on every device and on the host (src/selection/reference_scores.cc).
// Special-function units are faster, but no two of them agree in the last bit. Relative errors are
// below 2^-21.

namespace annulus::tile {

// 2^x for x <= 0; 0 below -125, so that no result is subnormal.
__device__ __forceinline__ float exact_exp2(float x) {
  if (!(x >= -125.0f)) return 0.0f;
  const float whole = rintf(x);
  const float f = __fadd_rn(x, -whole);  // in [-0.5, 0.5], exact
  float power = 1.5403530e-4f;  // ln(2)^6 / 6!, and the following coefficients descend to ln(2)^0
                                // / 0!
  power = __fmaf_rn(power, f, 1.3333558e-3f);
  power = __fmaf_rn(power, f, 9.6181291e-3f);
  power = __fmaf_rn(power, f, 5.5504109e-2f);
  power = __fmaf_rn(power, f, 2.4022651e-1f);
  power = __fmaf_rn(power, f, 6.9314718e-1f);
  power = __fmaf_rn(power, f, 1.0f);
  return __int_as_float(__float_as_int(power) + (static_cast<int>(whole) << 23));
}

// log2(x) for normal x > 0.
__device__ __forceinline__ float exact_log2(float x) {
  // The mantissa is in [0.75, 1.5), so that no digits cancel near 1.
  const int shifted = __float_as_int(x) - 0x3f400000;
  const float m = __int_as_float((shifted & 0x7fffff) + 0x3f400000);
  const float exponent = static_cast<float>(shifted >> 23);
  const float s = __fdiv_rn(__fadd_rn(m, -1.0f), __fadd_rn(m, 1.0f));
  const float square = __fmul_rn(s, s);
  float sum = 0.32059890f;  // 2 / (9 ln 2), the first coefficient of the series of the inverse
                            // hyperbolic tangent
  sum = __fmaf_rn(sum, square, 0.41219858f);
  sum = __fmaf_rn(sum, square, 0.57707802f);
  sum = __fmaf_rn(sum, square, 0.96179669f);
  sum = __fmaf_rn(sum, square, 2.8853900f);
  return __fmaf_rn(sum, s, exponent);
}

}  // namespace annulus::tile

#endif  // ANNULUS_TILE_EXACT_MATH_CUH_
