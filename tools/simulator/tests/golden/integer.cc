// Integer arithmetic: the manual's sections "Integer Arithmetic Instructions" and
// "Extended-Precision Integer Arithmetic Instructions".

#include <fmt/core.h>

#include <algorithm>
#include <limits>

#include "golden/golden.h"

namespace annulus::golden {
namespace {

template <typename T>
constexpr bool kIsSigned = std::is_signed_v<T>;
template <typename T>
constexpr i128 wide(T value) {
  return static_cast<i128>(value);
}
// Reduces modulo 2^width. This is the result of every integer instruction without .sat.
template <typename T>
constexpr T wrap(i128 value) {
  return static_cast<T>(static_cast<u128>(value));
}

template <typename T>
std::optional<T> quotient(T a, T b) {
  if (b == 0) return std::nullopt;  // unspecified in the manual
  if (kIsSigned<T> && b == static_cast<T>(-1) && a == std::numeric_limits<T>::min())
    return std::nullopt;
  return static_cast<T>(a / b);
}
template <typename T>
std::optional<T> remainder(T a, T b) {
  if (b == 0) return std::nullopt;
  if (kIsSigned<T> && b == static_cast<T>(-1)) {
    if (a == std::numeric_limits<T>::min()) return std::nullopt;
    return static_cast<T>(0);
  }
  return static_cast<T>(a % b);
}

// Adds the forms that exist for 16, 32 and 64 bits, signed and unsigned.
template <typename T>
void add_type(Set& set, const char* type) {
  const auto form = [&](const char* opcode, auto define) {
    set.form(fmt::format("{}.{}", opcode, type), fmt::format("{}.{} d, a, b;", opcode, type),
             define);
  };
  form(
      "add", +[](T a, T b) -> T { return wrap<T>(wide(a) + wide(b)); });
  form(
      "sub", +[](T a, T b) -> T { return wrap<T>(wide(a) - wide(b)); });
  form(
      "mul.lo",
      +[](T a, T b) -> T { return static_cast<T>(static_cast<u64>(a) * static_cast<u64>(b)); });
  form(
      "mul.hi", +[](T a, T b) -> T {
        if constexpr (kIsSigned<T>) return wrap<T>((wide(a) * wide(b)) >> (sizeof(T) * 8));
        return static_cast<T>((static_cast<u128>(a) * static_cast<u128>(b)) >> (sizeof(T) * 8));
      });
  form(
      "div", +[](T a, T b) { return quotient(a, b); });
  form(
      "rem", +[](T a, T b) { return remainder(a, b); });
  form(
      "min", +[](T a, T b) -> T { return std::min(a, b); });
  form(
      "max", +[](T a, T b) -> T { return std::max(a, b); });
  set.form(
      fmt::format("mad.lo.{}", type), fmt::format("mad.lo.{} d, a, b, c;", type),
      +[](T a, T b, T c) -> T {
        return static_cast<T>(static_cast<u64>(a) * static_cast<u64>(b) + static_cast<u64>(c));
      });
  if constexpr (kIsSigned<T>) {
    set.form(
        fmt::format("abs.{}", type), fmt::format("abs.{} d, a;", type),
        +[](T a) -> T { return wrap<T>(a < 0 ? -wide(a) : wide(a)); });
    set.form(
        fmt::format("neg.{}", type), fmt::format("neg.{} d, a;", type),
        +[](T a) -> T { return wrap<T>(-wide(a)); });
  }
}

template <typename Wide, typename Narrow>
void add_widening(Set& set, const char* type) {
  set.form(
      fmt::format("mul.wide.{}", type), fmt::format("mul.wide.{} d, a, b;", type),
      +[](Narrow a, Narrow b) -> Wide { return wrap<Wide>(wide(a) * wide(b)); });
  set.form(
      fmt::format("mad.wide.{}", type), fmt::format("mad.wide.{} d, a, b, c;", type),
      +[](Narrow a, Narrow b, Wide c) -> Wide { return wrap<Wide>(wide(a) * wide(b) + wide(c)); });
}

i64 low24(u32 value) { return value & 0xffffff; }
i64 low24(i32 value) { return static_cast<i32>(static_cast<u32>(value) << 8) >> 8; }

template <typename T>
void add_32_bit(Set& set, const char* type) {
  const auto form = [&](const char* opcode, const char* operands, auto define) {
    set.form(fmt::format("{}.{}", opcode, type), fmt::format("{}.{} {};", opcode, type, operands),
             define);
  };
  form(
      "mad.hi", "d, a, b, c",
      +[](T a, T b, T c) -> T { return wrap<T>(((wide(a) * wide(b)) >> 32) + wide(c)); });
  form(
      "mul24.lo", "d, a, b", +[](T a, T b) -> T { return wrap<T>(wide(low24(a)) * low24(b)); });
  form(
      "mul24.hi", "d, a, b",
      +[](T a, T b) -> T { return wrap<T>((wide(low24(a)) * low24(b)) >> 16); });
  form(
      "mad24.lo", "d, a, b, c",
      +[](T a, T b, T c) -> T { return wrap<T>(wide(low24(a)) * low24(b) + wide(c)); });
  form(
      "sad", "d, a, b, c", +[](T a, T b, T c) -> T {
        return wrap<T>(wide(c) + (a < b ? wide(b) - wide(a) : wide(a) - wide(b)));
      });
}

template <typename A, typename B>
i64 dot4(u32 a, u32 b) {
  i64 sum = 0;
  for (int i = 0; i < 4; ++i)
    sum += static_cast<i64>(static_cast<A>(a >> 8 * i)) * static_cast<B>(b >> 8 * i);
  return sum;
}

i32 saturate(i64 value) { return static_cast<i32>(std::clamp<i64>(value, INT32_MIN, INT32_MAX)); }

// Forms with two results write them as a 64-bit word, the low half first.

void add_carry(Set& set) {
  set.form(
      "add.cc.u32+addc.u32",
      "{ .reg .b32 l, h; add.cc.u32 l, a, b; addc.u32 h, a, c; mov.b64 d, {l, h}; }",
      +[](u32 a, u32 b, u32 c) -> u64 {
        const u32 carry = static_cast<u32>((static_cast<u64>(a) + b) >> 32);
        return both(a + b, a + c + carry);
      });
  set.form(
      "addc.cc.u32 chain",
      "{ .reg .b32 l, h; add.cc.u32 l, a, b; addc.cc.u32 h, a, c; addc.u32 l, 0, 0;"
      " mov.b64 d, {h, l}; }",
      +[](u32 a, u32 b, u32 c) -> u64 {
        const u64 first = static_cast<u64>(a) + b;
        const u64 second = static_cast<u64>(a) + c + (first >> 32);
        return both(static_cast<u32>(second), static_cast<u32>(second >> 32));
      });
  set.form(
      "sub.cc.u32+subc.u32",
      "{ .reg .b32 l, h; sub.cc.u32 l, a, b; subc.u32 h, c, a; mov.b64 d, {l, h}; }",
      +[](u32 a, u32 b, u32 c) -> u64 { return both(a - b, c - a - (a < b ? 1u : 0u)); });
  set.form(
      "mad.lo.cc.u32+madc.hi.u32",
      "{ .reg .b32 l, h; mad.lo.cc.u32 l, a, b, c; madc.hi.u32 h, a, b, 0; mov.b64 d, {l, h}; }",
      +[](u32 a, u32 b, u32 c) -> u64 { return static_cast<u64>(a) * b + c; });
}

}  // namespace

void add_integer(Set& set) {
  add_type<i16>(set, "s16");
  add_type<u16>(set, "u16");
  add_type<i32>(set, "s32");
  add_type<u32>(set, "u32");
  add_type<i64>(set, "s64");
  add_type<u64>(set, "u64");
  add_widening<i32, i16>(set, "s16");
  add_widening<u32, u16>(set, "u16");
  add_widening<i64, i32>(set, "s32");
  add_widening<u64, u32>(set, "u32");
  add_32_bit<i32>(set, "s32");
  add_32_bit<u32>(set, "u32");

  set.form(
      "add.sat.s32", "add.sat.s32 d, a, b;",
      +[](i32 a, i32 b) -> i32 { return saturate(static_cast<i64>(a) + b); });
  set.form(
      "sub.sat.s32", "sub.sat.s32 d, a, b;",
      +[](i32 a, i32 b) -> i32 { return saturate(static_cast<i64>(a) - b); });
  set.form(
      "mad.hi.sat.s32", "mad.hi.sat.s32 d, a, b, c;",
      +[](i32 a, i32 b, i32 c) -> i32 { return saturate(((static_cast<i64>(a) * b) >> 32) + c); });

  set.form(
      "dp4a.s32.s32", "dp4a.s32.s32 d, a, b, c;", +[](u32 a, u32 b, i32 c) -> i32 {
        return wrap<i32>(wide(dot4<std::int8_t, std::int8_t>(a, b)) + c);
      });
  set.form(
      "dp4a.u32.u32", "dp4a.u32.u32 d, a, b, c;", +[](u32 a, u32 b, u32 c) -> u32 {
        return wrap<u32>(wide(dot4<std::uint8_t, std::uint8_t>(a, b)) + c);
      });
  set.form(
      "dp4a.s32.u32", "dp4a.s32.u32 d, a, b, c;", +[](u32 a, u32 b, i32 c) -> i32 {
        return wrap<i32>(wide(dot4<std::int8_t, std::uint8_t>(a, b)) + c);
      });
  set.form(
      "dp2a.lo.s32.u32", "dp2a.lo.s32.u32 d, a, b, c;", +[](u32 a, u32 b, i32 c) -> i32 {
        const i64 low = static_cast<i64>(static_cast<i16>(a)) * (b & 0xff);
        return wrap<i32>(wide(low + static_cast<i64>(static_cast<i16>(a >> 16)) * (b >> 8 & 0xff)) +
                         c);
      });
  set.form(
      "dp2a.hi.u32.u32", "dp2a.hi.u32.u32 d, a, b, c;", +[](u32 a, u32 b, u32 c) -> u32 {
        return (a & 0xffff) * (b >> 16 & 0xff) + (a >> 16) * (b >> 24) + c;
      });
  add_carry(set);

  // Immediates: signs, bases and widths.
  set.form(
      "add.s32 immediate", "add.s32 d, a, -7;", +[](u32 a) -> u32 { return a - 7; });
  set.form(
      "add.s32 unsigned immediate", "add.s32 d, a, 4294967295;",
      +[](u32 a) -> u32 { return a - 1; });
  set.form(
      "add.s64 immediate", "add.s64 d, a, -9000000000;",
      +[](u64 a) -> u64 { return a - 9000000000ull; });
  set.form(
      "and.b32 hexadecimal", "and.b32 d, a, 0xF0F0f0f0;",
      +[](u32 a) -> u32 { return a & 0xf0f0f0f0u; });
  set.form(
      "or.b32 octal", "or.b32 d, a, 0777;", +[](u32 a) -> u32 { return a | 0777u; });
  set.form(
      "xor.b32 binary", "xor.b32 d, a, 0b1011;", +[](u32 a) -> u32 { return a ^ 11u; });
  set.form(
      "mul.wide.u16 signed immediate", "mul.wide.u16 d, a, -32768;",
      +[](u16 a) -> u32 { return a * 32768u; });
  set.form(
      "mad.wide.s32 immediate", "mad.wide.s32 d, a, -12, b;",
      +[](i32 a, u64 b) -> u64 { return b + static_cast<u64>(static_cast<i64>(a) * -12); });
}

}  // namespace annulus::golden
