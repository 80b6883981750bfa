// setp, set, selp, slct: "Comparison and Selection Instructions". An ordered comparison with a NaN
// is false, and an unordered one is true.

#include <fmt/core.h>

#include <cmath>

#include "golden/golden.h"

namespace annulus::golden {
namespace {

template <typename T>
double number(T value) {
  if constexpr (std::is_same_v<T, F16>)
    return value.value();
  else
    return static_cast<double>(value);
}
template <typename T>
bool unordered(T a, T b) {
  return std::isnan(number(a)) || std::isnan(number(b));
}

template <typename T>
void add_equality(Set& set, const char* type) {
  set.form(
      fmt::format("setp.eq.{}", type), fmt::format("setp.eq.{} d, a, b;", type),
      +[](T a, T b) -> bool { return a == b; });
  set.form(
      fmt::format("setp.ne.{}", type), fmt::format("setp.ne.{} d, a, b;", type),
      +[](T a, T b) -> bool { return a != b; });
}

template <typename T>
void add_order(Set& set, const char* type) {
  const auto form = [&](const char* compare, auto define) {
    set.form(fmt::format("setp.{}.{}", compare, type),
             fmt::format("setp.{}.{} d, a, b;", compare, type), define);
  };
  add_equality<T>(set, type);
  form(
      "lt", +[](T a, T b) -> bool { return a < b; });
  form(
      "le", +[](T a, T b) -> bool { return a <= b; });
  form(
      "gt", +[](T a, T b) -> bool { return a > b; });
  form(
      "ge", +[](T a, T b) -> bool { return a >= b; });
  if constexpr (std::is_unsigned_v<T>) {
    form(
        "lo", +[](T a, T b) -> bool { return a < b; });
    form(
        "ls", +[](T a, T b) -> bool { return a <= b; });
    form(
        "hi", +[](T a, T b) -> bool { return a > b; });
    form(
        "hs", +[](T a, T b) -> bool { return a >= b; });
  }
}

template <typename T>
void add_float_order(Set& set, const char* type) {
  const auto form = [&](const char* compare, auto define) {
    set.form(fmt::format("setp.{}.{}", compare, type),
             fmt::format("setp.{}.{} d, a, b;", compare, type), define);
  };
  form(
      "eq", +[](T a, T b) -> bool { return number(a) == number(b); });
  form(
      "ne", +[](T a, T b) -> bool { return !unordered(a, b) && number(a) != number(b); });
  form(
      "lt", +[](T a, T b) -> bool { return number(a) < number(b); });
  form(
      "le", +[](T a, T b) -> bool { return number(a) <= number(b); });
  form(
      "gt", +[](T a, T b) -> bool { return number(a) > number(b); });
  form(
      "ge", +[](T a, T b) -> bool { return number(a) >= number(b); });
  form(
      "equ", +[](T a, T b) -> bool { return unordered(a, b) || number(a) == number(b); });
  form(
      "neu", +[](T a, T b) -> bool { return unordered(a, b) || number(a) != number(b); });
  form(
      "ltu", +[](T a, T b) -> bool { return unordered(a, b) || number(a) < number(b); });
  form(
      "leu", +[](T a, T b) -> bool { return unordered(a, b) || number(a) <= number(b); });
  form(
      "gtu", +[](T a, T b) -> bool { return unordered(a, b) || number(a) > number(b); });
  form(
      "geu", +[](T a, T b) -> bool { return unordered(a, b) || number(a) >= number(b); });
  form(
      "num", +[](T a, T b) -> bool { return !unordered(a, b); });
  form(
      "nan", +[](T a, T b) -> bool { return unordered(a, b); });
}

void add_combined(Set& set) {
  set.form(
      "setp.lt.and.s32", "setp.lt.and.s32 d, a, b, c;",
      +[](i32 a, i32 b, bool c) -> bool { return a < b && c; });
  set.form(
      "setp.ge.or.u32 negated", "setp.ge.or.u32 d, a, b, !c;",
      +[](u32 a, u32 b, bool c) -> bool { return a >= b || !c; });
  set.form(
      "setp.eq.xor.b64", "setp.eq.xor.b64 d, a, b, c;",
      +[](u64 a, u64 b, bool c) -> bool { return (a == b) != c; });
  set.form(
      "setp.gt.and.f32", "setp.gt.and.f32 d, a, b, c;",
      +[](float a, float b, bool c) -> bool { return a > b && c; });
  // With two destinations the second combines the negated comparison.
  set.form(
      "setp.lt.s32 p|q",
      "{ .reg .pred p, q; .reg .b32 l, h; setp.lt.s32 p|q, a, b; selp.b32 l, 1, 0, p;"
      " selp.b32 h, 2, 0, q; or.b32 d, l, h; }",
      +[](i32 a, i32 b) -> u32 { return a < b ? 1 : 2; });
  set.form(
      "setp.gt.and.f32 p|q",
      "{ .reg .pred p, q; .reg .b32 l, h; setp.gt.and.f32 p|q, a, b, c; selp.b32 l, 1, 0, p;"
      " selp.b32 h, 2, 0, q; or.b32 d, l, h; }",
      +[](float a, float b, bool c) -> u32 { return !c      ? 0u
                                                    : a > b ? 1u
                                                            : 2u; });
  set.form(
      "setp.lt.ftz.f32", "setp.lt.ftz.f32 d, a, b;",
      +[](float a, float b) -> bool { return flush(a) < flush(b); });
  set.form(
      "setp.equ.ftz.f32", "setp.equ.ftz.f32 d, a, b;",
      +[](float a, float b) -> bool { return unordered(a, b) || flush(a) == flush(b); });
  set.form(
      "setp.lt.s32 immediate", "setp.lt.s32 d, a, -2147483647;",
      +[](i32 a) -> bool { return a < -2147483647; });
  set.form(
      "setp.gt.f32 immediate", "setp.gt.f32 d, a, 0fBF800000;",
      +[](float a) -> bool { return a > -1.0f; });
  set.form(
      "setp.lt.f16x2 p|q",
      "{ .reg .pred p, q; .reg .b32 l, h; setp.lt.f16x2 p|q, a, b; selp.b32 l, 1, 0, p;"
      " selp.b32 h, 2, 0, q; or.b32 d, l, h; }",
      +[](F16x2 a, F16x2 b) -> u32 {
        return (a.low.value() < b.low.value() ? 1u : 0u) +
               (a.high.value() < b.high.value() ? 2u : 0u);
      });
}

void add_set(Set& set) {
  set.form(
      "set.lt.u32.s32", "set.lt.u32.s32 d, a, b;",
      +[](i32 a, i32 b) -> u32 { return a < b ? 0xffffffffu : 0u; });
  set.form(
      "set.eq.s32.u32", "set.eq.s32.u32 d, a, b;",
      +[](u32 a, u32 b) -> u32 { return a == b ? 0xffffffffu : 0u; });
  set.form(
      "set.gt.f32.s32", "set.gt.f32.s32 d, a, b;",
      +[](i32 a, i32 b) -> u32 { return a > b ? 0x3f800000u : 0u; });
  set.form(
      "set.leu.u32.f32", "set.leu.u32.f32 d, a, b;",
      +[](float a, float b) -> u32 { return unordered(a, b) || a <= b ? 0xffffffffu : 0u; });
  set.form(
      "set.ne.and.u32.s64", "set.ne.and.u32.s64 d, a, b, c;",
      +[](i64 a, i64 b, bool c) -> u32 { return a != b && c ? 0xffffffffu : 0u; });
  set.form(
      "set.ge.f16x2.f16x2", "set.ge.f16x2.f16x2 d, a, b;", +[](F16x2 a, F16x2 b) -> u32 {
        return (a.low.value() >= b.low.value() ? 0x3c00u : 0u) |
               (a.high.value() >= b.high.value() ? 0x3c000000u : 0u);
      });
  set.form(
      "set.gtu.u32.f16x2", "set.gtu.u32.f16x2 d, a, b;", +[](F16x2 a, F16x2 b) -> u32 {
        return (a.low.value() <= b.low.value() ? 0u : 0xffffu) |
               (a.high.value() <= b.high.value() ? 0u : 0xffff0000u);
      });
  set.form(
      "set.eq.f16.f16", "set.eq.f16.f16 d, a, b;",
      +[](F16 a, F16 b) -> u16 { return a.value() == b.value() ? 0x3c00 : 0; });
  set.hopper_form(
      "set.nan.bf16.bf16", "set.nan.bf16.bf16 d, a, b;", +[](u16 a, u16 b) -> u16 {
        return (a & 0x7fff) > 0x7f80 || (b & 0x7fff) > 0x7f80 ? 0x3f80 : 0;
      });
}

template <typename T>
void add_selection(Set& set, const char* type) {
  set.form(
      fmt::format("selp.{}", type), fmt::format("selp.{} d, a, b, c;", type),
      +[](T a, T b, bool c) -> T { return c ? a : b; });
  set.form(
      fmt::format("slct.{}.s32", type), fmt::format("slct.{}.s32 d, a, b, c;", type),
      +[](T a, T b, i32 c) -> T { return c >= 0 ? a : b; });
}

}  // namespace

void add_compare(Set& set) {
  add_equality<u16>(set, "b16");
  add_equality<u32>(set, "b32");
  add_equality<u64>(set, "b64");
  add_order<i16>(set, "s16");
  add_order<u16>(set, "u16");
  add_order<i32>(set, "s32");
  add_order<u32>(set, "u32");
  add_order<i64>(set, "s64");
  add_order<u64>(set, "u64");
  add_float_order<float>(set, "f32");
  add_float_order<double>(set, "f64");
  add_float_order<F16>(set, "f16");
  add_combined(set);
  add_set(set);
  add_selection<u16>(set, "b16");
  add_selection<u32>(set, "b32");
  add_selection<u64>(set, "b64");
  set.form(
      "selp.s32 immediates", "selp.s32 d, 5, -5, a;", +[](bool a) -> i32 { return a ? 5 : -5; });
  set.form(
      "selp.b32 constant predicate", "selp.b32 d, a, b, 1;", +[](u32 a, u32) -> u32 { return a; });
  set.form(
      "selp.f32 bits", "selp.f32 d, a, 0fFF800000, b;",
      +[](u32 a, bool b) -> u32 { return b ? a : 0xff800000u; });
  // For an f32 selector, NaN selects the second operand, and negative zero counts as >= 0.
  set.form(
      "slct.b32.f32", "slct.b32.f32 d, a, b, c;",
      +[](u32 a, u32 b, float c) -> u32 { return c >= 0.0f ? a : b; });
}

}  // namespace annulus::golden
