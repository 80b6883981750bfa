// 16-bit arithmetic: "Half Precision Floating Point Instructions" and their bf16 forms.
// Intermediate results are exact in a double, or have a last bit that is set if bits follow it. So
// the definition is a single rounding to the format.

#include <fmt/core.h>

#include <cmath>
#include <limits>

#include "base/random.h"
#include "golden/golden.h"

namespace annulus::golden {
namespace {

// a b + c of 16-bit floats, in integers of 128 bits. The larger term starts at bit 64. Bits below
// its range, and later bits that a double cannot hold, are joined to the last bit.
double multiply_add(double a, double b, double c) {
  const double nearest = std::fma(a, b, c);
  if (nearest == 0 || !std::isfinite(nearest)) return nearest;
  int exponents[2];
  i128 terms[2];
  const double values[2] = {a * b, c};
  for (int i = 0; i < 2; ++i) {
    terms[i] = static_cast<i64>(std::ldexp(std::frexp(values[i], &exponents[i]), 53));
    if (terms[i] == 0) exponents[i] = -10000;
  }
  const int high = exponents[0] >= exponents[1] ? 0 : 1;
  const auto shift_right = [](i128 value, int count) -> i128 {
    const i128 size = value < 0 ? -value : value;
    const i128 kept = count < 127 ? size >> count : 0;
    const i128 joined = count < 127 && kept << count == size ? kept : kept | 1;
    return value < 0 ? -joined : joined;
  };
  i128 sum = terms[high] << 64;
  if (terms[1 - high] != 0) {
    sum += shift_right(terms[1 - high] << 64, exponents[high] - exponents[1 - high]);
  }
  int exponent = exponents[high] - 53 - 64;
  for (; sum >= (i128{1} << 53) || sum <= -(i128{1} << 53); ++exponent) sum = shift_right(sum, 1);
  return std::ldexp(static_cast<double>(static_cast<i64>(sum)), exponent);
}
double saturate(double value) {
  return std::isnan(value) || value <= 0 ? 0.0 : std::fmin(value, 1.0);
}
double relu(double value) { return value < 0 || (value == 0 && std::signbit(value)) ? 0.0 : value; }
double flush(double value) { return flush16(kHalfFormat, value); }

double smaller(double a, double b) {
  if (std::isnan(a)) return b;
  if (std::isnan(b)) return a;
  if (a == b) return std::signbit(a) ? a : b;
  return a < b ? a : b;
}
double larger(double a, double b) { return -smaller(-a, -b); }
double smaller_nan(double a, double b) {
  return std::isnan(a) || std::isnan(b) ? std::nan("") : smaller(a, b);
}
double larger_nan(double a, double b) {
  return std::isnan(a) || std::isnan(b) ? std::nan("") : larger(a, b);
}

F16 make(double value, F16) { return to_f16(value); }
Bf16 make(double value, Bf16) { return to_bf16(value); }

// Adds `opcode`.TYPE and `opcode`.TYPEx2, from one definition on doubles.
template <typename T, double (*kOperation)(double, double)>
void binary(Set& set, const std::string& opcode, const char* type) {
  set.form(
      fmt::format("{}.{}", opcode, type), fmt::format("{}.{} d, a, b;", opcode, type),
      +[](T a, T b) { return make(kOperation(a.value(), b.value()), T{}); });
  set.form(
      fmt::format("{}.{}x2", opcode, type), fmt::format("{}.{}x2 d, a, b;", opcode, type),
      +[](Pair<T> a, Pair<T> b) {
        return Pair<T>{make(kOperation(a.low.value(), b.low.value()), T{}),
                       make(kOperation(a.high.value(), b.high.value()), T{})};
      });
}
template <typename T, double (*kOperation)(double, double, double)>
void ternary(Set& set, const std::string& opcode, const char* type) {
  set.form(
      fmt::format("{}.{}", opcode, type), fmt::format("{}.{} d, a, b, c;", opcode, type),
      +[](T a, T b, T c) { return make(kOperation(a.value(), b.value(), c.value()), T{}); });
  set.form(
      fmt::format("{}.{}x2", opcode, type), fmt::format("{}.{}x2 d, a, b, c;", opcode, type),
      +[](Pair<T> a, Pair<T> b, Pair<T> c) {
        return Pair<T>{make(kOperation(a.low.value(), b.low.value(), c.low.value()), T{}),
                       make(kOperation(a.high.value(), b.high.value(), c.high.value()), T{})};
      });
}
template <typename T, double (*kOperation)(double)>
void unary(Set& set, const std::string& opcode, const char* type) {
  set.form(
      fmt::format("{}.{}", opcode, type), fmt::format("{}.{} d, a;", opcode, type),
      +[](T a) { return make(kOperation(a.value()), T{}); });
  set.form(
      fmt::format("{}.{}x2", opcode, type), fmt::format("{}.{}x2 d, a;", opcode, type),
      +[](Pair<T> a) {
        return Pair<T>{make(kOperation(a.low.value()), T{}), make(kOperation(a.high.value()), T{})};
      });
}

double plus(double a, double b) { return a + b; }
double minus(double a, double b) { return a - b; }
double times(double a, double b) { return a * b; }
// .ftz of f16 flushes, as an H200 does with f32, a result that is below 2^-14 after rounding to 11
// bits with an exponent of unbounded range, so if the exact result is below the tie.
double flush_result(double exact) {
  return std::fabs(exact) < 0x1p-14 - 0x1p-26 ? std::copysign(0.0, exact) : exact;
}
double plus_ftz(double a, double b) { return flush_result(flush(a) + flush(b)); }
double times_ftz(double a, double b) { return flush_result(flush(a) * flush(b)); }
double plus_sat(double a, double b) { return saturate(a + b); }
double times_sat(double a, double b) { return saturate(a * b); }
double fma_ftz(double a, double b, double c) {
  return flush_result(multiply_add(flush(a), flush(b), flush(c)));
}
double fma_sat(double a, double b, double c) { return saturate(multiply_add(a, b, c)); }
double fma_relu(double a, double b, double c) { return relu(multiply_add(a, b, c)); }
double negate(double a) { return -a; }
double magnitude(double a) { return std::fabs(a); }

template <typename T>
void add_shared_forms(Set& set, const char* type) {
  ternary<T, multiply_add>(set, "fma.rn", type);
  ternary<T, fma_relu>(set, "fma.rn.relu", type);
  binary<T, smaller>(set, "min", type);
  binary<T, larger>(set, "max", type);
  binary<T, smaller_nan>(set, "min.NaN", type);
  binary<T, larger_nan>(set, "max.NaN", type);
  unary<T, negate>(set, "neg", type);
  unary<T, magnitude>(set, "abs", type);
}

// Adds products a b of which many lie between 2^-14 - 2^-26 and 2^-14, where it matters whether a
// result is rounded before it is flushed.
void add_close_to_normal(Set& set) {
  set.form(
      "mul.ftz.f16 close to 2^-14", "mul.ftz.f16 d, a, b;",
      +[](F16 a, F16 b) { return to_f16(times_ftz(a.value(), b.value())); });
  base::Random random(14);
  std::vector<u64>& in = set.all().back().in;
  for (std::size_t i = 0; i < in.size(); i += 2) {
    const double a = 1.0 + random.below(1u << 10) * 0x1p-10;
    in[i] = to_f16(a * 0x1p-7).bits;
    in[i + 1] = to_f16((random.below(2) ? -0x1p-7 : 0x1p-7) / a).bits;
  }
}

}  // namespace

void add_half(Set& set) {
  add_shared_forms<F16>(set, "f16");
  add_shared_forms<Bf16>(set, "bf16");
  binary<F16, plus>(set, "add", "f16");
  binary<F16, plus>(set, "add.rn", "f16");
  binary<F16, minus>(set, "sub", "f16");
  binary<F16, times>(set, "mul", "f16");
  binary<F16, plus_ftz>(set, "add.ftz", "f16");
  binary<F16, times_ftz>(set, "mul.ftz", "f16");
  binary<F16, plus_sat>(set, "add.sat", "f16");
  binary<F16, times_sat>(set, "mul.sat", "f16");
  ternary<F16, fma_ftz>(set, "fma.rn.ftz", "f16");
  add_close_to_normal(set);
  ternary<F16, fma_sat>(set, "fma.rn.sat", "f16");
  // The relative error is at most 2^-9.9 and the absolute error at most 2^-10.987. In the subnormal
  // range half a unit of 2^-24 is added for the final rounding.
  set.form(
      "ex2.approx.f16", "ex2.approx.f16 d, a;", +[](F16 a) {
        const double value = std::exp2(a.value());
        return Near<F16>{value, value * 0x1.2p-10 + 0x1p-24};
      });
  set.form(
      "tanh.approx.f16", "tanh.approx.f16 d, a;", +[](F16 a) {
        return Near<F16>{std::tanh(a.value()), 0x1.1p-11};
      });
  // The third operand of a 16-bit fma may be its own destination.
  set.form(
      "fma.rn.f16x2 accumulate", "mov.b32 d, c; fma.rn.f16x2 d, a, b, d;",
      +[](F16x2 a, F16x2 b, F16x2 c) {
        return F16x2{to_f16(multiply_add(a.low.value(), b.low.value(), c.low.value())),
                     to_f16(multiply_add(a.high.value(), b.high.value(), c.high.value()))};
      });
}

}  // namespace annulus::golden
