// Single precision: "Floating Point Instructions". Exact forms are compared bit by bit, .approx
// forms within the error that the manual states.

#include <fmt/core.h>

#include <cfenv>
#include <cfloat>
#include <cmath>

#include "base/random.h"
#include "golden/golden.h"

namespace annulus::golden {
namespace {

// Evaluates with the processor's rounding mode set. Volatile operands keep the compiler from
// moving the arithmetic out of the region.
template <int kMode, typename T, typename F>
T directed(F operation, T a, T b, T c = T{}) {
  volatile T va = a;
  volatile T vb = b;
  volatile T vc = c;
  const int old = std::fegetround();
  std::fesetround(kMode);
  volatile T result = operation(va, vb, vc);
  std::fesetround(old);
  return result;
}

constexpr auto add = [](auto a, auto b, auto) { return a + b; };
constexpr auto subtract = [](auto a, auto b, auto) { return a - b; };
constexpr auto multiply = [](auto a, auto b, auto) { return a * b; };
constexpr auto fused = [](auto a, auto b, auto c) { return std::fma(a, b, c); };
constexpr auto divide = [](auto a, auto b, auto) { return a / b; };
constexpr auto root = [](auto a, auto, auto) { return std::sqrt(a); };

// The result of an operation with .ftz. The manual leaves open whether it is rounded before it is
// flushed. An H200 flushes a result that is below 2^-126 after rounding to 24 bits with an exponent
// of unbounded range, so if the exact result is below the tie, 2^-126 - 2^-151. The tie is a number
// of fp64, so the exact result is below it if the result is that fp64 cuts toward zero.
template <typename F>
float flushed(F operation, float a, float b, float c) {
  const double cut = directed<FE_TOWARDZERO>(operation, static_cast<double>(a),
                                             static_cast<double>(b), static_cast<double>(c));
  const float value = operation(a, b, c);
  return std::fabs(cut) < 0x1p-126 - 0x1p-151 ? std::copysign(0.0f, value) : value;
}

float saturate(float value) {
  if (std::isnan(value)) return 0.0f;
  return value <= 0.0f ? 0.0f : std::fmin(value, 1.0f);  // -0 becomes +0
}

template <const auto& kOperation>
void add_binary(Set& set, const char* opcode) {
  const auto form = [&](const char* suffix, float (*define)(float, float)) {
    set.form(fmt::format("{}{}.f32", opcode, suffix),
             fmt::format("{}{}.f32 d, a, b;", opcode, suffix), define);
  };
  form(
      "", +[](float a, float b) { return kOperation(a, b, 0); });
  form(
      ".rn", +[](float a, float b) { return kOperation(a, b, 0); });
  form(
      ".rz", +[](float a, float b) { return directed<FE_TOWARDZERO>(kOperation, a, b); });
  form(
      ".rm", +[](float a, float b) { return directed<FE_DOWNWARD>(kOperation, a, b); });
  form(
      ".rp", +[](float a, float b) { return directed<FE_UPWARD>(kOperation, a, b); });
  form(
      ".ftz", +[](float a, float b) { return flushed(kOperation, flush(a), flush(b), 0); });
  form(
      ".sat", +[](float a, float b) { return saturate(kOperation(a, b, 0)); });
  form(
      ".rn.ftz.sat",
      +[](float a, float b) { return saturate(flushed(kOperation, flush(a), flush(b), 0)); });
}

void add_fused(Set& set, const char* opcode) {
  const auto form = [&](const char* suffix, float (*define)(float, float, float)) {
    set.form(fmt::format("{}{}.f32", opcode, suffix),
             fmt::format("{}{}.f32 d, a, b, c;", opcode, suffix), define);
  };
  form(
      ".rn", +[](float a, float b, float c) { return fused(a, b, c); });
  form(
      ".rz", +[](float a, float b, float c) { return directed<FE_TOWARDZERO>(fused, a, b, c); });
  form(
      ".rm", +[](float a, float b, float c) { return directed<FE_DOWNWARD>(fused, a, b, c); });
  form(
      ".rp", +[](float a, float b, float c) { return directed<FE_UPWARD>(fused, a, b, c); });
  form(
      ".rn.ftz",
      +[](float a, float b, float c) { return flushed(fused, flush(a), flush(b), flush(c)); });
  form(
      ".rn.sat", +[](float a, float b, float c) { return saturate(fused(a, b, c)); });
}

void add_divide(Set& set) {
  const auto form = [&](const char* opcode, float (*define)(float, float)) {
    set.form(opcode, fmt::format("{} d, a, b;", opcode), define);
  };
  form(
      "div.rn.f32", +[](float a, float b) { return divide(a, b, 0); });
  form(
      "div.rz.f32", +[](float a, float b) { return directed<FE_TOWARDZERO>(divide, a, b); });
  form(
      "div.rm.f32", +[](float a, float b) { return directed<FE_DOWNWARD>(divide, a, b); });
  form(
      "div.rp.f32", +[](float a, float b) { return directed<FE_UPWARD>(divide, a, b); });
  form(
      "div.rn.ftz.f32", +[](float a, float b) { return flushed(divide, flush(a), flush(b), 0); });
  const auto unary = [&](const char* opcode, float (*define)(float)) {
    set.form(opcode, fmt::format("{} d, a;", opcode), define);
  };
  unary(
      "rcp.rn.f32", +[](float a) { return divide(1.0f, a, 0); });
  unary(
      "rcp.rz.f32", +[](float a) { return directed<FE_TOWARDZERO>(divide, 1.0f, a); });
  unary(
      "rcp.rn.ftz.f32", +[](float a) { return flushed(divide, 1.0f, flush(a), 0); });
  unary(
      "sqrt.rn.f32", +[](float a) { return root(a, 0, 0); });
  unary(
      "sqrt.rz.f32", +[](float a) { return directed<FE_TOWARDZERO>(root, a, 0.0f); });
  unary(
      "sqrt.rm.f32", +[](float a) { return directed<FE_DOWNWARD>(root, a, 0.0f); });
  unary(
      "sqrt.rp.f32", +[](float a) { return directed<FE_UPWARD>(root, a, 0.0f); });
  unary(
      "sqrt.rn.ftz.f32", +[](float a) { return flushed(root, flush(a), 0, 0); });
}

// Products and sums, many of which lie between 2^-126 - 2^-150 and 2^-126, where the rule for .ftz
// matters: a b is about 2^-126 in `product`, and about 2^-125 in `sum`, which subtracts 2^-126.
void add_close_to_normal(Set& set) {
  const auto form = [&](const char* name, const char* statement, int exponent, auto define) {
    set.form(name, statement, define);
    std::vector<u64>& in = set.all().back().in;
    const std::size_t operands = set.all().back().operands.size();
    base::Random random(126);
    for (std::size_t i = 0; i < in.size(); i += operands) {
      const float sign = random.below(2) ? -1.0f : 1.0f;
      const float a = std::ldexp(1.0f + static_cast<float>(random.below(1u << 23)) * 0x1p-23f, -63);
      const float b = std::ldexp(1.0f, exponent + 63) / (a * 0x1p63f);
      in[i] = std::bit_cast<u32>(a);
      in[i + 1] = std::bit_cast<u32>(sign * b);
      if (operands == 3) in[i + 2] = std::bit_cast<u32>(sign * -0x1p-126f);
    }
  };
  form(
      "mul.ftz.f32 close to 2^-126", "mul.ftz.f32 d, a, b;", -126,
      +[](float a, float b) { return flushed(multiply, a, b, 0); });
  form(
      "fma.rn.ftz.f32 close to 2^-126", "fma.rn.ftz.f32 d, a, b, c;", -125,
      +[](float a, float b, float c) { return flushed(fused, a, b, c); });
}

// A result within a relative error. The bound is never less than the smallest subnormal number.
Near<float> relative(double value, double error) {
  return {value, std::fmax(std::fabs(value) * error, 0x1p-149)};
}
// A result with .ftz. If it may be subnormal, it may also be zero after flushing.
Near<float> relative_ftz(double value, double error) {
  if (std::fabs(value) < FLT_MIN)
    return {0.0, std::fabs(value) > FLT_MIN * (1 - 0x1p-20) ? FLT_MIN : 0.0};
  return relative(value, error);
}

void add_approximate(Set& set) {
  const auto form = [&](const char* opcode, Near<float> (*define)(float)) {
    set.form(opcode, fmt::format("{} d, a;", opcode), define);
  };
  form(
      "rcp.approx.f32", +[](float a) { return relative(1.0 / a, 0x1p-23); });
  form(
      "rcp.approx.ftz.f32", +[](float a) { return relative_ftz(1.0 / flush(a), 0x1p-23); });
  form(
      "sqrt.approx.f32",
      +[](float a) { return relative(std::sqrt(static_cast<double>(a)), 0x1p-23); });
  form(
      "sqrt.approx.ftz.f32",
      +[](float a) { return relative_ftz(std::sqrt(static_cast<double>(flush(a))), 0x1p-23); });
  form(
      "rsqrt.approx.f32",
      +[](float a) { return relative(1.0 / std::sqrt(static_cast<double>(a)), 0x1p-22); });
  form(
      "rsqrt.approx.ftz.f32", +[](float a) {
        return relative_ftz(1.0 / std::sqrt(static_cast<double>(flush(a))), 0x1p-22);
      });
  form(
      "ex2.approx.f32",
      +[](float a) { return relative(std::exp2(static_cast<double>(a)), 0x1p-22); });
  form(
      "ex2.approx.ftz.f32",
      +[](float a) { return relative_ftz(std::exp2(static_cast<double>(flush(a))), 0x1p-22); });
  form(
      "lg2.approx.f32", +[](float a) {
        const double value = std::log2(static_cast<double>(a));
        return Near<float>{value, a > 0.5f && a < 2.0f ? 0x1p-22 : std::fabs(value) * 0x1p-22};
      });
  form(
      "lg2.approx.ftz.f32", +[](float a) {
        const double value = std::log2(static_cast<double>(flush(a)));
        return Near<float>{value, a > 0.5f && a < 2.0f ? 0x1p-22 : std::fabs(value) * 0x1p-22};
      });
  form(
      "tanh.approx.f32",
      +[](float a) { return relative(std::tanh(static_cast<double>(a)), 0x1p-11); });

  const auto optional = [&](const char* opcode, std::optional<Near<float>> (*define)(float)) {
    set.form(opcode, fmt::format("{} d, a;", opcode), define);
  };
  // The manual bounds the error only over [-2 pi, 2 pi].
  constexpr double kRange = 6.2831853;
  using Open = std::optional<Near<float>>;
  optional(
      "sin.approx.f32", +[](float a) -> Open {
        if (std::fabs(a) > kRange && std::isfinite(a)) return std::nullopt;
        return Near<float>{std::sin(static_cast<double>(a)), 0x1p-20};
      });
  optional(
      "cos.approx.ftz.f32", +[](float a) -> Open {
        if (std::fabs(a) > kRange && std::isfinite(a)) return std::nullopt;
        return Near<float>{std::cos(static_cast<double>(a)), 0x1p-20};
      });
  // The error is 2 ulp while |b| is in [2^-126, 2^126]; beyond that the manual allows zero or NaN.
  set.form(
      "div.approx.f32", "div.approx.f32 d, a, b;", +[](float a, float b) -> Open {
        const float size = std::fabs(b);
        if (std::isfinite(b) && (size < 0x1p-126f || size > 0x1p126f)) return std::nullopt;
        return relative(static_cast<double>(a) / b, 0x1p-22);
      });
  set.form(
      "div.approx.ftz.f32", "div.approx.ftz.f32 d, a, b;", +[](float a, float b) -> Open {
        const float size = std::fabs(b);
        if (std::isfinite(b) && (size < 0x1p-126f || size > 0x1p126f)) return std::nullopt;
        return relative_ftz(static_cast<double>(flush(a)) / b, 0x1p-22);
      });
  set.form(
      "div.full.f32", "div.full.f32 d, a, b;",
      +[](float a, float b) { return relative(static_cast<double>(a) / b, 0x1p-22); });
  set.form(
      "div.full.ftz.f32", "div.full.ftz.f32 d, a, b;", +[](float a, float b) {
        return relative_ftz(static_cast<double>(flush(a)) / flush(b), 0x1p-22);
      });
}

// If one operand is a NaN, the result is the other operand. Two NaN give the canonical NaN. -0 is
// smaller than +0.
u32 smaller(float a, float b) {
  if (std::isnan(a) && std::isnan(b)) return 0x7fffffff;
  if (std::isnan(a)) return std::bit_cast<u32>(b);
  if (std::isnan(b)) return std::bit_cast<u32>(a);
  if (a == b) return std::bit_cast<u32>(std::signbit(a) ? a : b);
  return std::bit_cast<u32>(a < b ? a : b);
}
u32 larger(float a, float b) {
  if (std::isnan(a) && std::isnan(b)) return 0x7fffffff;
  if (std::isnan(a)) return std::bit_cast<u32>(b);
  if (std::isnan(b)) return std::bit_cast<u32>(a);
  if (a == b) return std::bit_cast<u32>(std::signbit(a) ? b : a);
  return std::bit_cast<u32>(a > b ? a : b);
}

void add_selection(Set& set) {
  const auto form = [&](const char* opcode, u32 (*define)(float, float)) {
    set.form(opcode, fmt::format("{} d, a, b;", opcode), define);
  };
  form("min.f32", smaller);
  form("max.f32", larger);
  form(
      "min.ftz.f32", +[](float a, float b) { return smaller(flush(a), flush(b)); });
  form(
      "max.ftz.f32", +[](float a, float b) { return larger(flush(a), flush(b)); });
  form(
      "min.NaN.f32", +[](float a, float b) {
        return std::isnan(a) || std::isnan(b) ? 0x7fffffffu : smaller(a, b);
      });
  form(
      "max.NaN.f32", +[](float a, float b) {
        return std::isnan(a) || std::isnan(b) ? 0x7fffffffu : larger(a, b);
      });
  set.form(
      "abs.f32", "abs.f32 d, a;", +[](float a) { return std::fabs(a); });
  set.form(
      "neg.f32", "neg.f32 d, a;", +[](float a) { return -a; });
  set.form(
      "abs.ftz.f32", "abs.ftz.f32 d, a;", +[](float a) { return std::fabs(flush(a)); });
  set.form(
      "neg.ftz.f32", "neg.ftz.f32 d, a;", +[](float a) { return -flush(a); });
  // a has the sign and b the magnitude of the result.
  set.form(
      "copysign.f32", "copysign.f32 d, a, b;",
      +[](u32 a, u32 b) -> u32 { return (a & 0x80000000u) | (b & 0x7fffffffu); });
  const auto test = [&](const char* opcode, bool (*define)(float)) {
    set.form(opcode, fmt::format("{} d, a;", opcode), define);
  };
  test(
      "testp.finite.f32", +[](float a) -> bool { return std::isfinite(a); });
  test(
      "testp.infinite.f32", +[](float a) -> bool { return std::isinf(a); });
  test(
      "testp.number.f32", +[](float a) -> bool { return !std::isnan(a); });
  test(
      "testp.notanumber.f32", +[](float a) -> bool { return std::isnan(a); });
  // "Positive and negative zero are considered normal numbers" (testp).
  test(
      "testp.normal.f32", +[](float a) -> bool { return std::isnormal(a) || a == 0.0f; });
  set.form(
      "testp.normal.f64", "testp.normal.f64 d, a;",
      +[](double a) -> bool { return std::isnormal(a) || a == 0.0; });
  test(
      "testp.subnormal.f32", +[](float a) -> bool { return std::fpclassify(a) == FP_SUBNORMAL; });
}

}  // namespace

void add_float32(Set& set) {
  add_binary<add>(set, "add");
  add_binary<subtract>(set, "sub");
  add_binary<multiply>(set, "mul");
  add_fused(set, "fma");
  add_fused(set, "mad");
  add_divide(set);
  add_close_to_normal(set);
  add_approximate(set);
  add_selection(set);
  set.form(
      "add.f32 immediate", "add.f32 d, a, 0f3FC00000;", +[](float a) { return a + 1.5f; });
  set.form(
      "fma.rn.f32 immediates", "fma.rn.f32 d, a, 0fC0000000, 0f3F800000;",
      +[](float a) { return std::fma(a, -2.0f, 1.0f); });
  set.form(
      "mul.f32 decimal immediate", "mul.f32 d, a, 0.25;", +[](float a) { return a * 0.25f; });
}

}  // namespace annulus::golden
