#ifndef ANNULUS_BASE_FLOAT8_H_
#define ANNULUS_BASE_FLOAT8_H_

// Converts e4m3 (OCP 8-bit floating point specification 1.0) to and from fp32:
//
//   | sign | exponent : 4, bias 7 | mantissa : 3 |    1111.111 is NaN, and there are no infinities
//
// Normal from 2^-6 to 448, subnormal in units of 2^-9.

#include <bit>
#include <cstdint>

namespace annulus::base {

constexpr float e4m3_to_float(std::uint8_t bits) {
  const std::uint32_t sign = static_cast<std::uint32_t>(bits & 0x80u) << 24;
  const std::uint32_t magnitude = bits & 0x7fu;
  if (magnitude == 0x7f) return std::bit_cast<float>(sign | 0x7fc00000u);
  if (magnitude < 8) {
    const float small = static_cast<float>(magnitude) * 0x1p-9f;
    return sign ? -small : small;
  }
  return std::bit_cast<float>(sign | ((magnitude << 20) + 0x3c000000u));
}

// Rounds to nearest even; values beyond 448 become 448, as with cvt.rn.satfinite.e4m3x2.f32.
constexpr std::uint8_t float_to_e4m3(float value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = (bits >> 24) & 0x80u;
  const std::uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return 0x7f;                                      // NaN
  if (magnitude >= 0x43e00000u) return static_cast<std::uint8_t>(sign | 0x7eu);  // 448
  // Below 2^-6: subnormal. Adding 2^14 lets the adder round to units of 2^-9.
  if (magnitude < 0x3c800000u) {
    const float shifted = std::bit_cast<float>(magnitude) + 0x1p14f;
    return static_cast<std::uint8_t>(sign | (std::bit_cast<std::uint32_t>(shifted) - 0x46800000u));
  }
  const std::uint32_t odd = (magnitude >> 20) & 1u;
  return static_cast<std::uint8_t>(sign | ((magnitude - 0x3c000000u + 0x7ffffu + odd) >> 20));
}

}  // namespace annulus::base

#endif  // ANNULUS_BASE_FLOAT8_H_
