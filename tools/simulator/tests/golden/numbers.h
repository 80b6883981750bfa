#ifndef ANNULUS_SIMULATOR_TESTS_GOLDEN_NUMBERS_H_
#define ANNULUS_SIMULATOR_TESTS_GOLDEN_NUMBERS_H_

// Integers by their width, and floating-point formats, for the golden definitions. A value is a
// double, and a format determines which doubles exist. The file follows the IEEE definitions and
// uses neither base/half.h nor any file of src/simulator, so that one error cannot be on both
// sides.

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace annulus::golden {

using i8 = std::int8_t;
using u8 = std::uint8_t;
using i16 = std::int16_t;
using u16 = std::uint16_t;
using i32 = std::int32_t;
using u32 = std::uint32_t;
using i64 = std::int64_t;
using u64 = std::uint64_t;
__extension__ typedef __int128 i128;
__extension__ typedef unsigned __int128 u128;

inline u64 both(u32 low, u32 high) { return low | static_cast<u64>(high) << 32; }

struct Format {
  int mantissa;      // stored bits
  int min_exponent;  // exponent of the smallest normal number
  int max_exponent;  // exponent of the largest finite number
};
inline constexpr Format kHalfFormat{10, -14, 15};
inline constexpr Format kBfloatFormat{7, -126, 127};
inline constexpr Format kTf32Format{10, -126, 127};

enum class Round { kNearestEven, kZero, kDown, kUp, kNearestAway };

// Rounds `value` to an integer.
inline double round_integer(double value, Round mode) {
  const double down = std::floor(value);
  const double fraction = value - down;
  switch (mode) {
    case Round::kZero:
      return std::trunc(value);
    case Round::kDown:
      return down;
    case Round::kUp:
      return std::ceil(value);
    case Round::kNearestAway:
      return std::copysign(std::floor(std::fabs(value) + 0.5), value);  // used on small values only
    case Round::kNearestEven:
      break;
  }
  double nearest = down;
  if (fraction > 0.5 || (fraction == 0.5 && std::fmod(down, 2.0) != 0.0)) nearest = down + 1.0;
  return std::copysign(nearest, value);
}

// The number of `format` to which `mode` rounds `value`. Beyond the largest finite number it is
// infinity or that number, as IEEE 754 defines for the mode.
inline double round_to(const Format& format, double value, Round mode = Round::kNearestEven) {
  if (value == 0.0 || !std::isfinite(value)) return value;
  int exponent = std::ilogb(value);
  if (exponent < format.min_exponent) exponent = format.min_exponent;
  const double unit = std::ldexp(1.0, exponent - format.mantissa);
  const double rounded = round_integer(value / unit, mode) * unit;
  const double largest = std::ldexp(2.0 - std::ldexp(1.0, -format.mantissa), format.max_exponent);
  if (std::fabs(rounded) <= largest) return rounded;
  const bool to_infinity = mode == Round::kNearestEven || mode == Round::kNearestAway ||
                           (mode == Round::kUp && value > 0) || (mode == Round::kDown && value < 0);
  return std::copysign(to_infinity ? std::numeric_limits<double>::infinity() : largest, value);
}

// The bits of a double that is a number of a 16-bit `format`. NaN becomes 0x7fff, the canonical
// NaN.
inline std::uint16_t encode16(const Format& format, double value) {
  if (std::isnan(value)) return 0x7fff;
  const int bias = format.max_exponent;
  const std::uint32_t sign = std::signbit(value) ? 0x8000u : 0u;
  const double magnitude = std::fabs(value);
  if (std::isinf(value)) {
    return static_cast<std::uint16_t>(
        sign | ((static_cast<std::uint32_t>(bias) * 2 + 1) << format.mantissa));
  }
  if (magnitude < std::ldexp(1.0, format.min_exponent)) {  // zero and subnormal numbers
    return static_cast<std::uint16_t>(
        sign |
        static_cast<std::uint32_t>(std::ldexp(magnitude, format.mantissa - format.min_exponent)));
  }
  const int exponent = std::ilogb(magnitude);
  const double fraction = std::ldexp(magnitude, -exponent) - 1.0;
  return static_cast<std::uint16_t>(
      sign | (static_cast<std::uint32_t>(exponent + bias) << format.mantissa) |
      static_cast<std::uint32_t>(std::ldexp(fraction, format.mantissa)));
}

inline double decode16(const Format& format, std::uint16_t bits) {
  const int bias = format.max_exponent;
  const int field = (bits & 0x7fff) >> format.mantissa;
  const int fraction = bits & ((1 << format.mantissa) - 1);
  double value = 0;
  if (field == bias * 2 + 1) {
    value = fraction ? std::numeric_limits<double>::quiet_NaN()
                     : std::numeric_limits<double>::infinity();
  } else if (field == 0) {
    value = std::ldexp(fraction, format.min_exponent - format.mantissa);
  } else {
    value = std::ldexp(std::ldexp(1.0, format.mantissa) + fraction, field - bias - format.mantissa);
  }
  return (bits & 0x8000) ? -value : value;
}

// Makes a subnormal fp32 a zero of the same sign, as .ftz does with operands and results.
inline float flush(float value) {
  return std::fpclassify(value) == FP_SUBNORMAL ? std::copysign(0.0f, value) : value;
}

inline double flush16(const Format& format, double value) {
  return std::fabs(value) < std::ldexp(1.0, format.min_exponent) ? std::copysign(0.0, value)
                                                                 : value;
}

}  // namespace annulus::golden

#endif  // ANNULUS_SIMULATOR_TESTS_GOLDEN_NUMBERS_H_
