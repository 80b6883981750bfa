// cvt: every pair of types and every rounding that kernels use, from the manual's page on cvt.

#include <fmt/core.h>

#include <algorithm>
#include <bit>
#include <cfenv>
#include <cmath>
#include <limits>
#include <type_traits>

#include "golden/golden.h"

namespace annulus::golden {
namespace {

template <typename T>
std::string type_name() {
  if constexpr (std::is_same_v<T, float>)
    return "f32";
  else if constexpr (std::is_same_v<T, double>)
    return "f64";
  else if constexpr (std::is_same_v<T, F16>)
    return "f16";
  else
    return fmt::format("{}{}", std::is_signed_v<T> ? 's' : 'u', sizeof(T) * 8);
}
template <typename T>
double number(T value) {
  if constexpr (std::is_same_v<T, F16>)
    return value.value();
  else
    return static_cast<double>(value);
}

// A value of a type with less than 32 bits is stored in a register of 32 bits, extended by its own
// sign or by zeros.
template <typename T>
using Held =
    std::conditional_t<sizeof(T) < 4, std::conditional_t<std::is_signed_v<T>, i32, u32>, T>;

template <typename To, typename From>
void add_integer_pair(Set& set) {
  const std::string name = fmt::format("{}.{}", type_name<To>(), type_name<From>());
  set.form(
      "cvt." + name, fmt::format("cvt.{} d, a;", name),
      +[](Held<From> a) -> Held<To> { return static_cast<To>(static_cast<From>(a)); });
  // The manual allows .sat only if a value can lie outside the destination's range.
  constexpr bool kFits =
      static_cast<i128>(std::numeric_limits<To>::min()) <= std::numeric_limits<From>::min() &&
      static_cast<i128>(std::numeric_limits<To>::max()) >=
          static_cast<i128>(std::numeric_limits<From>::max());
  if constexpr (!kFits) {
    set.form(
        "cvt.sat." + name, fmt::format("cvt.sat.{} d, a;", name), +[](Held<From> a) -> Held<To> {
          const i128 value = static_cast<From>(a);
          const i128 low = std::numeric_limits<To>::min();
          const i128 high = std::numeric_limits<To>::max();
          return static_cast<To>(value < low ? low : value > high ? high : value);
        });
  }
}
template <typename To>
void add_integer_row(Set& set) {
  add_integer_pair<To, i8>(set);
  add_integer_pair<To, u8>(set);
  add_integer_pair<To, i16>(set);
  add_integer_pair<To, u16>(set);
  add_integer_pair<To, i32>(set);
  add_integer_pair<To, u32>(set);
  add_integer_pair<To, i64>(set);
  add_integer_pair<To, u64>(set);
}

// Values out of range are clamped. NaN gives zero, or only the top bit set if either side has 64
// bits.
template <typename To, typename From, Round kMode>
Held<To> to_integer(From a) {
  const double value = number(a);
  if (std::isnan(value)) {
    if (!std::is_same_v<From, double> && sizeof(To) < 8) return 0;
    return static_cast<To>(u64{1} << (sizeof(To) * 8 - 1));
  }
  const double rounded = std::isinf(value) ? value : round_integer(value, kMode);
  const double limit =
      std::ldexp(1.0, static_cast<int>(sizeof(To)) * 8 - (std::is_signed_v<To> ? 1 : 0));
  if (rounded >= limit) return std::numeric_limits<To>::max();
  if (rounded < static_cast<double>(std::numeric_limits<To>::min()))
    return std::numeric_limits<To>::min();
  return static_cast<To>(rounded);
}

template <typename To, typename From>
void add_to_integer(Set& set) {
  const std::string name = fmt::format("{}.{}", type_name<To>(), type_name<From>());
  const auto form = [&](const char* mode, Held<To> (*define)(From)) {
    set.form(fmt::format("cvt.{}.{}", mode, name), fmt::format("cvt.{}.{} d, a;", mode, name),
             define);
  };
  form("rni", to_integer<To, From, Round::kNearestEven>);
  form("rzi", to_integer<To, From, Round::kZero>);
  form("rmi", to_integer<To, From, Round::kDown>);
  form("rpi", to_integer<To, From, Round::kUp>);
}
template <typename From>
void add_to_integers(Set& set) {
  add_to_integer<i16, From>(set);
  add_to_integer<u16, From>(set);
  add_to_integer<i32, From>(set);
  add_to_integer<u32, From>(set);
  add_to_integer<i64, From>(set);
  add_to_integer<u64, From>(set);
}

template <int kMode, typename To, typename From>
To converted(From a) {
  volatile From from = a;
  const int old = std::fegetround();
  std::fesetround(kMode);
  volatile To result = static_cast<To>(from);
  std::fesetround(old);
  return result;
}

template <typename To, typename From>
void add_to_float(Set& set) {
  const std::string name = fmt::format("{}.{}", type_name<To>(), type_name<From>());
  const auto form = [&](const char* mode, To (*define)(Held<From>)) {
    set.form(fmt::format("cvt.{}.{}", mode, name), fmt::format("cvt.{}.{} d, a;", mode, name),
             define);
  };
  form(
      "rn", +[](Held<From> a) { return converted<FE_TONEAREST, To>(static_cast<From>(a)); });
  form(
      "rz", +[](Held<From> a) { return converted<FE_TOWARDZERO, To>(static_cast<From>(a)); });
  form(
      "rm", +[](Held<From> a) { return converted<FE_DOWNWARD, To>(static_cast<From>(a)); });
  form(
      "rp", +[](Held<From> a) { return converted<FE_UPWARD, To>(static_cast<From>(a)); });
}
template <typename From>
void add_to_half(Set& set) {  // up to 32 bits: the intermediate double is exact
  const std::string name = "f16." + type_name<From>();
  set.form(
      "cvt.rn." + name, "cvt.rn." + name + " d, a;",
      +[](Held<From> a) { return to_f16(static_cast<double>(static_cast<From>(a))); });
  set.form(
      "cvt.rz." + name, "cvt.rz." + name + " d, a;", +[](Held<From> a) {
        return to_f16(static_cast<double>(static_cast<From>(a)), Round::kZero);
      });
}

// 64 bits do not fit into a double, so the integer is rounded to 8 significant bits here.
template <typename From>
Bf16 to_bf16_exactly(From from, Round mode) {
  const bool negative = from < 0;
  const u64 value = negative ? 0 - static_cast<u64>(from) : static_cast<u64>(from);
  const int cut = std::max(0, static_cast<int>(std::bit_width(value)) - 8);
  u64 kept = value >> cut;
  const u64 rest = value - (kept << cut);
  const u64 half = cut == 0 ? 0 : u64{1} << (cut - 1);
  const bool away = mode == Round::kNearestEven
                        ? rest > half || (rest == half && rest != 0 && kept % 2 == 1)
                        : rest != 0 && mode == (negative ? Round::kDown : Round::kUp);
  if (away) ++kept;
  const double magnitude = std::ldexp(static_cast<double>(kept), cut);
  return to_bf16(negative ? -magnitude : magnitude);
}
template <typename From>
void add_to_bf16(Set& set) {
  const std::string name = "bf16." + type_name<From>();
  const auto form = [&](const char* mode, Bf16 (*define)(From)) {
    set.hopper_form(fmt::format("cvt.{}.{}", mode, name),
                    fmt::format("cvt.{}.{} d, a;", mode, name), define);
  };
  form(
      "rn", +[](From a) { return to_bf16_exactly(a, Round::kNearestEven); });
  form(
      "rz", +[](From a) { return to_bf16_exactly(a, Round::kZero); });
  form(
      "rm", +[](From a) { return to_bf16_exactly(a, Round::kDown); });
  form(
      "rp", +[](From a) { return to_bf16_exactly(a, Round::kUp); });
}

void add_float_to_float(Set& set) {
  set.form(
      "cvt.f32.f16", "cvt.f32.f16 d, a;", +[](F16 a) { return static_cast<float>(a.value()); });
  set.form(
      "cvt.f64.f16", "cvt.f64.f16 d, a;", +[](F16 a) { return a.value(); });
  set.form(
      "cvt.f64.f32", "cvt.f64.f32 d, a;", +[](float a) { return static_cast<double>(a); });
  set.form(
      "cvt.ftz.f64.f32", "cvt.ftz.f64.f32 d, a;",
      +[](float a) { return static_cast<double>(flush(a)); });
  set.form(
      "cvt.rn.f32.f64", "cvt.rn.f32.f64 d, a;",
      +[](double a) { return converted<FE_TONEAREST, float>(a); });
  set.form(
      "cvt.rz.f32.f64", "cvt.rz.f32.f64 d, a;",
      +[](double a) { return converted<FE_TOWARDZERO, float>(a); });
  set.form(
      "cvt.rm.f32.f64", "cvt.rm.f32.f64 d, a;",
      +[](double a) { return converted<FE_DOWNWARD, float>(a); });
  set.form(
      "cvt.rp.f32.f64", "cvt.rp.f32.f64 d, a;",
      +[](double a) { return converted<FE_UPWARD, float>(a); });
  set.form(
      "cvt.rn.f16.f64", "cvt.rn.f16.f64 d, a;", +[](double a) { return to_f16(a); });
  set.form(
      "cvt.rn.f16.f32", "cvt.rn.f16.f32 d, a;",
      +[](float a) { return to_f16(static_cast<double>(a)); });
  set.form(
      "cvt.rz.f16.f32", "cvt.rz.f16.f32 d, a;",
      +[](float a) { return to_f16(static_cast<double>(a), Round::kZero); });
  set.form(
      "cvt.rn.ftz.f16.f32", "cvt.rn.ftz.f16.f32 d, a;",
      +[](float a) { return to_f16(static_cast<double>(flush(a))); });
  set.form(
      "cvt.rn.bf16.f32", "cvt.rn.bf16.f32 d, a;",
      +[](float a) { return to_bf16(static_cast<double>(a)).bits; });
  set.form(
      "cvt.rz.bf16.f32", "cvt.rz.bf16.f32 d, a;",
      +[](float a) { return to_bf16(static_cast<double>(a), Round::kZero).bits; });
  set.form(
      "cvt.rn.relu.bf16.f32", "cvt.rn.relu.bf16.f32 d, a;",
      +[](float a) { return to_bf16(a <= 0 ? 0.0 : static_cast<double>(a)); });
  set.form(
      "cvt.rn.relu.f16.f32", "cvt.rn.relu.f16.f32 d, a;",
      +[](float a) { return to_f16(a <= 0 ? 0.0 : static_cast<double>(a)); });
  // Ties are rounded away from zero, and the 13 low bits of the result are zero. NaN gives a NaN.
  set.form(
      "cvt.rna.tf32.f32", "cvt.rna.tf32.f32 d, a;", +[](float a) -> float {
        return static_cast<float>(
            round_to(kTf32Format, static_cast<double>(a), Round::kNearestAway));
      });
}

// The nearest number of e4m3, with ties to even. For values beyond the largest number it is the
// largest, 448.
u32 to_e4m3(double value) {
  if (std::isnan(value)) return 0x7f;
  u32 nearest = 0;
  double least = std::numeric_limits<double>::infinity();
  for (u32 bits = 0; bits < 0x7f; ++bits) {  // 0x7f is NaN
    const int exponent = static_cast<int>(bits >> 3);
    const double fraction = static_cast<double>(bits & 7) / 8;
    const double number =
        exponent == 0 ? std::ldexp(fraction, -6) : std::ldexp(1 + fraction, exponent - 7);
    const double distance = std::fabs(std::fmin(std::fabs(value), 448.0) - number);
    if (distance > least || (distance == least && bits % 2 == 1)) continue;
    nearest = bits;
    least = distance;
  }
  return nearest | (std::signbit(value) ? 0x80u : 0u);
}

// The value of e4m3 (1 sign bit, 4 bits of exponent with bias 7, 3 bits of fraction) or e5m2 (1, 5
// with bias 15, and 2). In e4m3 all bits set mean NaN, and there is no infinity. e5m2 has both,
// like f16.
double from_byte(u32 bits, int mantissa_bits) {
  const int exponent_bits = 7 - mantissa_bits, bias = (1 << (exponent_bits - 1)) - 1;
  const int exponent = static_cast<int>(bits >> mantissa_bits) & ((1 << exponent_bits) - 1);
  const u32 mantissa = bits & ((1u << mantissa_bits) - 1);
  const double fraction = std::ldexp(static_cast<double>(mantissa), -mantissa_bits);
  double number =
      exponent == 0 ? std::ldexp(fraction, 1 - bias) : std::ldexp(1 + fraction, exponent - bias);
  if (mantissa_bits == 3 && (bits & 0x7f) == 0x7f) number = std::nan("");
  if (mantissa_bits == 2 && exponent == 31) {
    number = mantissa ? std::nan("") : std::numeric_limits<double>::infinity();
  }
  return bits & 0x80 ? -number : number;
}

template <int kMantissaBits, bool kRelu>
F16x2 from_bytes(u32 a) {
  const auto half = [](u32 bits) {
    const double value = from_byte(bits & 0xff, kMantissaBits);
    return to_f16(kRelu && value <= 0 ? 0.0 : value);
  };
  return {half(a), half(a >> 8)};
}

void add_packed(Set& set) {  // the first source becomes the upper half
  set.hopper_form("cvt.rn.f16x2.e4m3x2",
                  "{ .reg .b16 h; cvt.u16.u32 h, a; cvt.rn.f16x2.e4m3x2 d, h; }",
                  from_bytes<3, false>);
  set.hopper_form("cvt.rn.relu.f16x2.e4m3x2",
                  "{ .reg .b16 h; cvt.u16.u32 h, a; cvt.rn.relu.f16x2.e4m3x2 d, h; }",
                  from_bytes<3, true>);
  set.hopper_form("cvt.rn.f16x2.e5m2x2",
                  "{ .reg .b16 h; cvt.u16.u32 h, a; cvt.rn.f16x2.e5m2x2 d, h; }",
                  from_bytes<2, false>);
  set.hopper_form("cvt.rn.relu.f16x2.e5m2x2",
                  "{ .reg .b16 h; cvt.u16.u32 h, a; cvt.rn.relu.f16x2.e5m2x2 d, h; }",
                  from_bytes<2, true>);
  set.hopper_form(
      "cvt.rn.satfinite.e4m3x2.f32",
      "{ .reg .b16 h; cvt.rn.satfinite.e4m3x2.f32 h, a, b; cvt.u32.u16 d, h; }",
      +[](float a, float b) -> u32 {
        return to_e4m3(static_cast<double>(b)) | to_e4m3(static_cast<double>(a)) << 8;
      });
  set.hopper_form(
      "cvt.rn.satfinite.relu.e4m3x2.f32",
      "{ .reg .b16 h; cvt.rn.satfinite.relu.e4m3x2.f32 h, a, b; cvt.u32.u16 d, h; }",
      +[](float a, float b) -> u32 {
        return to_e4m3(b <= 0 ? 0.0 : static_cast<double>(b)) |
               to_e4m3(a <= 0 ? 0.0 : static_cast<double>(a)) << 8;
      });
  set.form(
      "cvt.rn.f16x2.f32", "cvt.rn.f16x2.f32 d, a, b;", +[](float a, float b) {
        return F16x2{to_f16(static_cast<double>(b)), to_f16(static_cast<double>(a))};
      });
  set.form(
      "cvt.rz.f16x2.f32", "cvt.rz.f16x2.f32 d, a, b;", +[](float a, float b) {
        return F16x2{to_f16(static_cast<double>(b), Round::kZero),
                     to_f16(static_cast<double>(a), Round::kZero)};
      });
  set.form(
      "cvt.rn.bf16x2.f32", "cvt.rn.bf16x2.f32 d, a, b;", +[](float a, float b) -> u32 {
        return to_bf16(static_cast<double>(b)).bits |
               static_cast<u32>(to_bf16(static_cast<double>(a)).bits) << 16;
      });
  set.form(
      "cvt.rz.bf16x2.f32", "cvt.rz.bf16x2.f32 d, a, b;", +[](float a, float b) {
        return Bf16x2{to_bf16(static_cast<double>(b), Round::kZero),
                      to_bf16(static_cast<double>(a), Round::kZero)};
      });
  set.form(
      "cvt.rn.relu.f16x2.f32", "cvt.rn.relu.f16x2.f32 d, a, b;", +[](float a, float b) {
        return F16x2{to_f16(b <= 0 ? 0.0 : static_cast<double>(b)),
                     to_f16(a <= 0 ? 0.0 : static_cast<double>(a))};
      });
}

// Rounds to an integral value of the same type. Zeros and results keep the sign of the operand.
template <typename T, Round kMode>
T integral(T a) {
  const double value = number(a);
  const double rounded =
      std::isfinite(value) ? std::copysign(round_integer(value, kMode), value) : value;
  if constexpr (std::is_same_v<T, F16>)
    return to_f16(rounded);
  else
    return static_cast<T>(rounded);
}
template <typename T>
void add_integral(Set& set) {
  const std::string type = type_name<T>();
  const auto form = [&](const char* mode, T (*define)(T)) {
    set.form(fmt::format("cvt.{0}.{1}.{1}", mode, type),
             fmt::format("cvt.{0}.{1}.{1} d, a;", mode, type), define);
  };
  form("rni", integral<T, Round::kNearestEven>);
  form("rzi", integral<T, Round::kZero>);
  form("rmi", integral<T, Round::kDown>);
  form("rpi", integral<T, Round::kUp>);
}

}  // namespace

void add_convert(Set& set) {
  add_integer_row<i8>(set);
  add_integer_row<u8>(set);
  add_integer_row<i16>(set);
  add_integer_row<u16>(set);
  add_integer_row<i32>(set);
  add_integer_row<u32>(set);
  add_integer_row<i64>(set);
  add_integer_row<u64>(set);
  add_to_integers<float>(set);
  add_to_integers<double>(set);
  add_to_integers<F16>(set);
  add_to_float<float, i32>(set);
  add_to_float<float, u32>(set);
  add_to_float<float, i64>(set);
  add_to_float<float, u64>(set);
  add_to_float<float, i16>(set);
  add_to_float<float, u8>(set);
  add_to_float<double, i32>(set);
  add_to_float<double, u32>(set);
  add_to_float<double, i64>(set);
  add_to_float<double, u64>(set);
  add_to_half<i32>(set);
  add_to_half<u32>(set);
  add_to_half<i16>(set);
  add_to_half<u16>(set);
  add_to_bf16<i64>(set);
  add_to_bf16<u64>(set);
  add_float_to_float(set);
  add_packed(set);
  add_integral<float>(set);
  add_integral<double>(set);
  add_integral<F16>(set);
  set.form(
      "cvt.sat.f32.f32", "cvt.sat.f32.f32 d, a;",
      +[](float a) { return std::isnan(a) || a <= 0 ? 0.0f : std::fmin(a, 1.0f); });
  set.form(
      "cvt.rn.sat.f16.f32", "cvt.rn.sat.f16.f32 d, a;", +[](float a) {
        return to_f16(std::isnan(a) || a <= 0 ? 0.0 : std::fmin(static_cast<double>(a), 1.0));
      });
  set.form(
      "cvt.ftz.f32.f16", "cvt.ftz.f32.f16 d, a;",
      +[](F16 a) { return static_cast<float>(a.value()); });
  set.form(
      "cvt.rzi.ftz.s32.f32", "cvt.rzi.ftz.s32.f32 d, a;",
      +[](float a) { return to_integer<i32, float, Round::kZero>(flush(a)); });
  set.form(
      "cvt.rpi.ftz.s32.f32", "cvt.rpi.ftz.s32.f32 d, a;",
      +[](float a) { return to_integer<i32, float, Round::kUp>(flush(a)); });
  set.form(
      "cvt.sat.u8.f32", "cvt.rni.sat.u8.f32 d, a;",
      +[](float a) -> u32 { return to_integer<u8, float, Round::kNearestEven>(a); });
}

}  // namespace annulus::golden
