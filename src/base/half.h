#ifndef ANNULUS_BASE_HALF_H_
#define ANNULUS_BASE_HALF_H_

// Converts fp16 (IEEE 754 binary16) and bf16 to and from fp32. Rounds to nearest even, and keeps
// NaN. Also converts any dtype that operands have.

#include <bit>
#include <cstdint>

#include "annulus/types.h"
#include "base/float8.h"

namespace annulus::base {

constexpr float bf16_to_float(std::uint16_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

constexpr std::uint16_t float_to_bf16(float value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return 0x7fff;  // the same NaN as from cvt.rn.bf16.f32
  return static_cast<std::uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

constexpr float fp16_to_float(std::uint16_t bits) {
  const std::uint32_t sign = static_cast<std::uint32_t>(bits & 0x8000u) << 16;
  const std::uint32_t exponent = (bits >> 10) & 31u;
  const std::uint32_t mantissa = bits & 0x3ffu;
  if (exponent == 31) return std::bit_cast<float>(sign | 0x7f800000u | (mantissa << 13));
  if (exponent == 0) {  // subnormal: mantissa * 2^-24 is exact in fp32
    const float magnitude = static_cast<float>(mantissa) * 0x1p-24f;
    return sign ? -magnitude : magnitude;
  }
  return std::bit_cast<float>(sign | ((exponent + 112) << 23) | (mantissa << 13));
}

constexpr std::uint16_t float_to_fp16(float value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = (bits >> 16) & 0x8000u;
  const std::uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return 0x7fff;                                       // NaN
  if (magnitude >= 0x477ff000u) return static_cast<std::uint16_t>(sign | 0x7c00u);  // overflow
  if (magnitude < 0x38800000u) {  // below 2^-14: subnormal, in units of 2^-24
    // After 0.5 is added, the last bit of the sum has the unit 2^-24, so the addition itself
    // rounds.
    const float shifted = std::bit_cast<float>(magnitude) + 0.5f;
    return static_cast<std::uint16_t>(sign | (std::bit_cast<std::uint32_t>(shifted) - 0x3f000000u));
  }
  const std::uint32_t odd = (magnitude >> 13) & 1u;
  return static_cast<std::uint16_t>(sign | ((magnitude - 0x38000000u + 0xfffu + odd) >> 13));
}

// Converts one element, in the low bits. Requires: dtype is not kFloat32.
constexpr float to_float(Dtype dtype, std::uint16_t bits) {
  if (dtype == Dtype::kFloat8E4M3) return e4m3_to_float(static_cast<std::uint8_t>(bits));
  return dtype == Dtype::kFloat16 ? fp16_to_float(bits) : bf16_to_float(bits);
}
constexpr std::uint16_t from_float(Dtype dtype, float value) {
  if (dtype == Dtype::kFloat8E4M3) return float_to_e4m3(value);
  return dtype == Dtype::kFloat16 ? float_to_fp16(value) : float_to_bf16(value);
}

}  // namespace annulus::base

#endif  // ANNULUS_BASE_HALF_H_
