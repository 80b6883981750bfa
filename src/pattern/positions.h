#ifndef ANNULUS_PATTERN_POSITIONS_H_
#define ANNULUS_PATTERN_POSITIONS_H_

// Arithmetic of positions, which may be negative: division rounds down, mod is never negative, and
// results are clamped to the range of the type, so comparisons remain exact.

#include <cstdint>

#include "base/math.h"

namespace annulus::pattern {

using base::floor_div;

// Requires: b > 0.
inline std::int64_t floor_mod(std::int64_t a, std::int64_t b) {
  const std::int64_t rest = a % b;
  return rest < 0 ? rest + b : rest;
}

// a - b, clamped to the range of the type.
inline std::int64_t difference(std::int64_t a, std::int64_t b) {
  std::int64_t result = 0;
  if (!__builtin_sub_overflow(a, b, &result)) return result;
  return b < 0 ? INT64_MAX : INT64_MIN;
}

// a * b, clamped to the range of the type. Requires: b > 0.
inline std::int64_t product(std::int64_t a, std::int64_t b) {
  std::int64_t result = 0;
  if (!__builtin_mul_overflow(a, b, &result)) return result;
  return a < 0 ? INT64_MIN : INT64_MAX;
}

}  // namespace annulus::pattern

#endif  // ANNULUS_PATTERN_POSITIONS_H_
