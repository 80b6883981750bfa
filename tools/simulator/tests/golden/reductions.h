#ifndef ANNULUS_SIMULATOR_TESTS_GOLDEN_REDUCTIONS_H_
#define ANNULUS_SIMULATOR_TESTS_GOLDEN_REDUCTIONS_H_

// The results of atomics (PTX ISA 9.0, section 9.7.13.5) and of the reductions of bulk copies
// (9.7.9.25.4.2 and 9.7.9.25.5.3), from the value in memory and the operand. Halves are passed as
// bits. No definition has an operand that is a NaN.

#include <type_traits>

#include "golden/golden.h"

namespace annulus::golden {

template <typename T>
T add(T old, T value) {
  if constexpr (std::is_floating_point_v<T>) {
    return old + value;
  } else {
    using U = std::make_unsigned_t<T>;
    return static_cast<T>(static_cast<U>(old) + static_cast<U>(value));
  }
}
template <typename T>
T smaller(T old, T value) {
  return old < value ? old : value;
}
template <typename T>
T larger(T old, T value) {
  return old > value ? old : value;
}
template <typename T>
T bit_and(T old, T value) {
  return old & value;
}
template <typename T>
T bit_or(T old, T value) {
  return old | value;
}
template <typename T>
T bit_xor(T old, T value) {
  return old ^ value;
}
template <typename T>
T increment(T old, T limit) {
  return old >= limit ? 0 : old + 1;
}
template <typename T>
T decrement(T old, T limit) {
  return old == 0 || old > limit ? limit : old - 1;
}

template <typename Wrapped>
u16 add_halves(u16 old, u16 value) {
  const double sum = Wrapped{old}.value() + Wrapped{value}.value();
  if constexpr (std::is_same_v<Wrapped, F16>) {
    return to_f16(sum).bits;
  } else {
    return to_bf16(sum).bits;
  }
}
template <typename Wrapped>
u16 smaller_half(u16 old, u16 value) {
  return Wrapped{old}.value() < Wrapped{value}.value() ? old : value;
}
template <typename Wrapped>
u16 larger_half(u16 old, u16 value) {
  return Wrapped{old}.value() > Wrapped{value}.value() ? old : value;
}

// Makes operands finite numbers that are not tiny: bits outside `keep` are replaced by the bits of
// `filler`, which out holds.
inline void tame(Golden& golden, u64 filler, u64 keep) {
  golden.filler = filler;
  for (u64& word : golden.in) word = (word & keep) | (filler & ~keep);
}

}  // namespace annulus::golden

#endif  // ANNULUS_SIMULATOR_TESTS_GOLDEN_REDUCTIONS_H_
