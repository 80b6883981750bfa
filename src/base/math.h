#ifndef ANNULUS_BASE_MATH_H_
#define ANNULUS_BASE_MATH_H_

// Integer division with a defined rounding, for a of either sign, in the common type of both.
// Requires: b > 0. No intermediate sum can overflow, so every result that fits the type is correct.

#include <type_traits>

namespace annulus::base {

template <typename A, typename B>
constexpr std::common_type_t<A, B> floor_div(A a, B b) {
  using T = std::common_type_t<A, B>;
  const T rest = static_cast<T>(a) % static_cast<T>(b);
  return static_cast<T>(a) / static_cast<T>(b) - (rest < 0 ? 1 : 0);
}

template <typename A, typename B>
constexpr std::common_type_t<A, B> ceil_div(A a, B b) {
  using T = std::common_type_t<A, B>;
  const T rest = static_cast<T>(a) % static_cast<T>(b);
  return static_cast<T>(a) / static_cast<T>(b) + (rest > 0 ? 1 : 0);
}

// round_down() returns the largest multiple of b that is at most a. round_up() returns the smallest
// multiple that is at least a.
template <typename A, typename B>
constexpr std::common_type_t<A, B> round_down(A a, B b) {
  return floor_div(a, b) * b;
}

template <typename A, typename B>
constexpr std::common_type_t<A, B> round_up(A a, B b) {
  return ceil_div(a, b) * b;
}

static_assert(ceil_div(7, 4) == 2 && ceil_div(8, 4) == 2 && ceil_div(-7, 4) == -1);
static_assert(floor_div(7, 4) == 1 && floor_div(-8, 4) == -2 && floor_div(-7, 4) == -2);
static_assert(ceil_div(0x7fffffff, 2) == 0x40000000 && round_up(5u, 4u) == 8u);

}  // namespace annulus::base

#endif  // ANNULUS_BASE_MATH_H_
