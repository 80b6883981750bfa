#ifndef ANNULUS_SIMULATOR_MACHINE_NUMBERS_H_
#define ANNULUS_SIMULATOR_MACHINE_NUMBERS_H_

// The number formats of PTX, and arithmetic on one number.

#include <bit>
#include <cfenv>
#include <cmath>
#include <cstdint>
#include <type_traits>

#include "base/half.h"

namespace annulus::simulator {

// 16-bit floats are stored as their bits. Arithmetic on them is done in fp32 or fp64.
struct Half {
  std::uint16_t bits;
};
struct Brain {
  std::uint16_t bits;
};
struct Half2 {
  Half lo, hi;
};
struct Brain2 {
  Brain lo, hi;
};

inline float widen(Half value) { return base::fp16_to_float(value.bits); }
inline float widen(Brain value) { return base::bf16_to_float(value.bits); }
template <typename T>
T narrow(float value);
template <>
inline Half narrow<Half>(float value) {
  return {base::float_to_fp16(value)};
}
template <>
inline Brain narrow<Brain>(float value) {
  return {base::float_to_bf16(value)};
}

// Converts fp64 to fp32 by "rounding to odd": an inexact result gets an odd last bit. Rounding the
// result once more, to a format of at most 22 bits, then gives the same number as rounding only
// once.
inline float to_odd(double value) {
  const float nearest = static_cast<float>(value);
  if (value != value || static_cast<double>(nearest) == value) return nearest;
  std::uint32_t bits = std::bit_cast<std::uint32_t>(nearest);
  if (std::fabs(static_cast<double>(nearest)) > std::fabs(value)) --bits;  // towards zero
  return std::bit_cast<float>(bits | 1u);
}

// A NaN result in fp32 is the canonical NaN (PTX ISA 9.0, section 9.7.3: "NaN payloads are not
// preserved").
inline float canonical(float value) {
  return value != value ? std::bit_cast<float>(0x7fffffffu) : value;
}
inline double canonical(double value) {
  return value != value ? std::bit_cast<double>(0x7fffffffffffffffull) : value;
}

// Evaluates F under one of the rounding modes of <cfenv>. The compiler does not take rounding modes
// into account; the volatile copies keep it from moving the arithmetic out of the region.
template <int kMode, typename F>
struct Directed {
  template <typename T>
  static T opaque(T value) {
    volatile T copy = value;
    return copy;
  }
  template <typename T, typename... S>
  T operator()(T first, S... rest) const {
    const int before = std::fegetround();
    std::fesetround(kMode);
    volatile T result = F{}(opaque(first), opaque(rest)...);
    std::fesetround(before);
    return result;
  }
};

// .ftz: subnormal inputs and results become zero of the same sign.
inline float flush(float value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  return (bits & 0x7f800000u) == 0 ? std::bit_cast<float>(bits & 0x80000000u) : value;
}

// a + b with .ftz. A subnormal sum of two fp32 numbers is exact, so rounding hides no subnormal
// result.
inline float add_flushed(float a, float b) { return canonical(flush(flush(a) + flush(b))); }

// .sat: clamped to [0, 1], NaN to +0.
inline float saturate(float value) { return value > 0.0f ? (value < 1.0f ? value : 1.0f) : 0.0f; }

// The larger or the smaller of two numbers. If one operand is NaN, the result is the other one, and
// +0 is larger than -0. The function has no branches, so that loops over lanes become vector code.
// If a equals b, their bits are joined by AND (max) or OR (min), which only matters for the sign of
// zero.
template <bool kMax, typename T>
inline T pick_number(T a, T b) {
  using Bits = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
  const Bits x = std::bit_cast<Bits>(a);
  const Bits y = std::bit_cast<Bits>(b);
  const T equal = std::bit_cast<T>(kMax ? x & y : x | y);
  const T larger = (kMax ? a > b : a < b) ? a : b;
  const T number = a == b ? equal : larger;
  const T not_b = b != b ? a : number;
  return a != a ? canonical(b) : not_b;
}
template <typename T>
inline T max_number(T a, T b) {
  return pick_number<true>(a, b);
}
template <typename T>
inline T min_number(T a, T b) {
  return pick_number<false>(a, b);
}

}  // namespace annulus::simulator

#endif  // ANNULUS_SIMULATOR_MACHINE_NUMBERS_H_
