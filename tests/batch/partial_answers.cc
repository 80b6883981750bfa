#include "batch/partial_answers.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "base/half.h"
#include "base/random.h"

namespace annulus::test {
namespace {

constexpr float kEndless = std::numeric_limits<float>::infinity();
constexpr float kNoNumber = std::numeric_limits<float>::quiet_NaN();

std::size_t at(std::int64_t value) { return static_cast<std::size_t>(value); }

}  // namespace

PartialAnswers::PartialAnswers(const Device& device, const MergeProblem& problem,
                               std::uint64_t seed)
    : device_(device), problem_(problem) {
  const std::int64_t rows = problem.max_rows * problem.heads, dim = problem.dim_v;
  const double of_base = problem.lse_base == LseBase::kNatural ? std::numbers::ln2 : 1;
  base::Random random(seed + 40);
  std::vector<std::uint32_t> only;
  for (std::int64_t row = 0; row < rows; ++row) {
    only.push_back(random.below(static_cast<std::uint32_t>(problem.inputs)));
  }
  for (std::int64_t input = 0; input < problem.inputs; ++input) {
    HostState state = HostState::empty(rows, dim);
    std::vector<std::uint16_t> o;
    std::vector<float> lse;
    for (std::int64_t row = 0; row < rows; ++row) {
      const bool empty = row % 9 == 2   ? random.below(2) == 0
                         : row % 9 == 5 ? input != only[at(row)]
                                        : row % 9 == 8;
      state.m[at(row)] = empty ? kNoNumber : 4 * random.normal() + 2;
      state.l[at(row)] = empty ? 0 : 1 + 9 * static_cast<float>(random.uniform());
      for (std::int64_t d = 0; d < dim; ++d) {
        const float value = empty ? kNoNumber : random.normal();
        state.acc[at(row * dim + d)] = value * (empty ? 1 : state.l[at(row)]);
        o.push_back(base::from_float(problem.dtype, value));
      }
      lse.push_back(
          empty ? -kEndless
                : static_cast<float>(of_base * (state.m[at(row)] + std::log2(state.l[at(row)]))));
    }
    if (problem.form == PartialForm::kStates) {
      inputs_.push_back({.o = nullptr,
                         .lse = nullptr,
                         .state = {static_cast<float*>(put(state.acc.data(), state.acc.size() * 4)),
                                   static_cast<float*>(put(state.m.data(), state.m.size() * 4)),
                                   static_cast<float*>(put(state.l.data(), state.l.size() * 4))}});
    } else {
      inputs_.push_back({.o = put(o.data(), o.size() * 2),
                         .lse = static_cast<float*>(put(lse.data(), lse.size() * 4)),
                         .state = {}});
    }
    states_.push_back(std::move(state));
    outputs_.push_back(std::move(o));
    lses_.push_back(std::move(lse));
  }
  if (problem.sink_logits) {
    for (std::int64_t head = 0; head < problem.heads; ++head) sinks_.push_back(3 * random.normal());
    // Some heads have no sink.
    if (seed % 2 == 0) sinks_[seed / 2 % sinks_.size()] = -kEndless;
    operands_.sink_logits = static_cast<float*>(put(sinks_.data(), sinks_.size() * 4));
  }
  const std::vector<std::uint16_t> no_o(at(rows * dim), 0x7fff);
  const std::vector<float> no_floats(at(rows * dim), kNoNumber);
  const auto floats = [&](std::int64_t count) {
    return static_cast<float*>(put(no_floats.data(), at(count) * 4));
  };
  if (problem.carry_out) {
    operands_.state = {floats(rows * dim), floats(rows), floats(rows)};
    return;
  }
  operands_.o = put(no_o.data(), no_o.size() * 2);
  operands_.lse = floats(rows);
  operands_.o_strides = operands_.input_o_strides = {problem.heads * dim, dim};
  operands_.lse_strides = operands_.input_lse_strides = {problem.heads, 1};
}

void* PartialAnswers::put(const void* data, std::size_t bytes) {
  memory_.push_back(device_.allocate(bytes));
  device_.copy_to_device(memory_.back().data(), data, bytes);
  return memory_.back().data();
}

MergeOperands PartialAnswers::operands() const {
  MergeOperands made = operands_;
  made.inputs = inputs_;
  return made;
}

std::vector<float> PartialAnswers::merged_lse() const {
  std::vector<float> lse(at(problem_.max_rows * problem_.heads));
  device_.copy_to_host(lse.data(), operands_.lse, lse.size() * 4);
  return lse;
}

std::vector<std::uint16_t> PartialAnswers::merged_o() const {
  std::vector<std::uint16_t> o(at(problem_.max_rows * problem_.heads * problem_.dim_v));
  device_.copy_to_host(o.data(), operands_.o, o.size() * 2);
  return o;
}

// Checks that each value is the exact value rounded once, apart from fp32 errors before. These are
// 2^-18 of the sum of magnitudes, because a reciprocal and powers of two have errors of about
// 2^-22.
std::string PartialAnswers::first_wrong() const {
  const std::vector<float> lse = merged_lse();
  const std::vector<std::uint16_t> o = merged_o();
  const std::int64_t dim = problem_.dim_v;
  const bool states = problem_.form == PartialForm::kStates;
  const double of_base = problem_.lse_base == LseBase::kNatural ? std::numbers::ln2 : 1;
  const double rounding = problem_.dtype == Dtype::kFloat16 ? 0x1p-11 : 0x1p-8;
  for (std::int64_t row = 0; row < problem_.max_rows * problem_.heads; ++row) {
    // Weights in base 2. The weights for O and LSE come from the given LSE.
    double largest = -kEndless, sum = 0;
    std::vector<double> exponents;
    for (std::size_t input = 0; input < states_.size(); ++input) {
      const float l = states_[input].l[at(row)];
      const double m = states ? static_cast<double>(states_[input].m[at(row)])
                              : static_cast<double>(lses_[input][at(row)]) / of_base;
      exponents.push_back(l == 0 ? -kEndless : m);
      largest = std::max(largest, exponents.back());
    }
    const bool has_sink = problem_.sink_logits && sinks_[at(row % problem_.heads)] != -kEndless;
    const double sink =
        has_sink ? static_cast<double>(sinks_[at(row % problem_.heads)]) * std::numbers::log2e : 0;
    if (has_sink) largest = std::max(largest, sink);
    for (std::size_t input = 0; input < states_.size(); ++input) {
      if (exponents[input] == -kEndless) continue;
      const double l = states ? static_cast<double>(states_[input].l[at(row)]) : 1;
      sum += std::exp2(exponents[input] - largest) * l;
    }
    if (has_sink) sum += std::exp2(sink - largest);
    const double exact = sum == 0 ? -kEndless : of_base * (largest + std::log2(sum));
    const float got = lse[at(row)];
    if (sum == 0 ? got != -kEndless
                 : !(std::abs(got - exact) <= 0x1p-20 * std::max(1.0, std::abs(exact)))) {
      return fmt::format("row {}: LSE is {}, not {}", row, got, exact);
    }
    for (std::int64_t d = 0; d < dim; ++d) {
      double value = 0, magnitude = 0;
      for (std::size_t input = 0; input < states_.size(); ++input) {
        if (exponents[input] == -kEndless) continue;
        const double of_input =
            states ? static_cast<double>(states_[input].acc[at(row * dim + d)])
                   : base::to_float(problem_.dtype, outputs_[input][at(row * dim + d)]);
        const double part = std::exp2(exponents[input] - largest) * of_input / sum;
        value += part;
        magnitude += std::abs(part);
      }
      const double element = base::to_float(problem_.dtype, o[at(row * dim + d)]);
      const double bound = rounding * std::max(std::abs(value), 0x1p-14) + 0x1p-18 * magnitude;
      if (std::abs(element - value) <= bound) continue;
      return fmt::format("row {}, element {}: O is {}, not {}", row, d, element, value);
    }
  }
  return {};
}

}  // namespace annulus::test
