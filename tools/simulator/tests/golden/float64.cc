// Double precision: "Floating Point Instructions". Every form is IEEE 754 and is compared bit by
// bit.

#include <fmt/core.h>

#include <cfenv>
#include <cmath>

#include "golden/golden.h"

namespace annulus::golden {
namespace {

template <int kMode, typename F>
double directed(F operation, double a, double b, double c = 0) {
  volatile double va = a;
  volatile double vb = b;
  volatile double vc = c;
  const int old = std::fegetround();
  std::fesetround(kMode);
  volatile double result = operation(va, vb, vc);
  std::fesetround(old);
  return result;
}

double add(double a, double b, double) { return a + b; }
double subtract(double a, double b, double) { return a - b; }
double multiply(double a, double b, double) { return a * b; }
double divide(double a, double b, double) { return a / b; }
double fused(double a, double b, double c) { return std::fma(a, b, c); }

template <double (*kOperation)(double, double, double)>
void add_binary(Set& set, const char* opcode) {
  const auto form = [&](const char* suffix, double (*define)(double, double)) {
    set.form(fmt::format("{}{}.f64", opcode, suffix),
             fmt::format("{}{}.f64 d, a, b;", opcode, suffix), define);
  };
  form(
      ".rn", +[](double a, double b) { return kOperation(a, b, 0); });
  form(
      ".rz", +[](double a, double b) { return directed<FE_TOWARDZERO>(kOperation, a, b); });
  form(
      ".rm", +[](double a, double b) { return directed<FE_DOWNWARD>(kOperation, a, b); });
  form(
      ".rp", +[](double a, double b) { return directed<FE_UPWARD>(kOperation, a, b); });
}

// min and max with one NaN return the number.
double smaller(double a, double b) {
  if (std::isnan(a)) return b;
  if (std::isnan(b)) return a;
  if (a == b) return std::signbit(a) ? a : b;
  return a < b ? a : b;
}
double larger(double a, double b) {
  if (std::isnan(a)) return b;
  if (std::isnan(b)) return a;
  if (a == b) return std::signbit(a) ? b : a;
  return a > b ? a : b;
}

}  // namespace

void add_float64(Set& set) {
  add_binary<add>(set, "add");
  add_binary<subtract>(set, "sub");
  add_binary<multiply>(set, "mul");
  add_binary<divide>(set, "div");
  set.form(
      "add.f64", "add.f64 d, a, b;", +[](double a, double b) { return a + b; });
  set.form(
      "fma.rn.f64", "fma.rn.f64 d, a, b, c;",
      +[](double a, double b, double c) { return std::fma(a, b, c); });
  set.form(
      "fma.rz.f64", "fma.rz.f64 d, a, b, c;",
      +[](double a, double b, double c) { return directed<FE_TOWARDZERO>(fused, a, b, c); });
  set.form(
      "rcp.rn.f64", "rcp.rn.f64 d, a;", +[](double a) { return 1.0 / a; });
  set.form(
      "sqrt.rn.f64", "sqrt.rn.f64 d, a;", +[](double a) { return std::sqrt(a); });
  set.form("min.f64", "min.f64 d, a, b;", smaller);
  set.form("max.f64", "max.f64 d, a, b;", larger);
  set.form(
      "abs.f64", "abs.f64 d, a;", +[](double a) { return std::fabs(a); });
  set.form(
      "neg.f64", "neg.f64 d, a;", +[](double a) { return -a; });
  set.form(
      "mul.f64 immediate", "mul.f64 d, a, 0d3FE0000000000000;", +[](double a) { return a * 0.5; });
}

}  // namespace annulus::golden
