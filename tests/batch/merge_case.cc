#include "batch/merge_case.h"

#include <fmt/core.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <numbers>

#include "base/half.h"
#include "base/random.h"

namespace annulus::test {
namespace {

constexpr std::uint16_t kUntouched = 0x7f7f;
constexpr float kUntouchedLse = 12345.0f;
constexpr float kInfinity = std::numeric_limits<float>::infinity();

std::size_t size(std::int64_t value) { return static_cast<std::size_t>(value); }

// The spacing of the numbers of a 16-bit dtype around a value.
double spacing(Dtype dtype, double value) {
  const bool half = dtype == Dtype::kFloat16;
  const int exponent = value == 0 ? -1000 : std::ilogb(value);
  return std::ldexp(1.0, std::max(exponent, half ? -14 : -126) - (half ? 10 : 7));
}

}  // namespace

MergeCase::MergeCase(const Device& device, const MergeProblem& problem, const MergeLayout& layout)
    : device_(device), problem_(problem), layout_(layout) {
  const std::int64_t rows = problem_.max_rows, heads = problem_.heads, dim = problem_.dim_v;
  const auto strides = [&](std::int64_t of_head, bool heads_first) -> RowStrides {
    return heads_first ? RowStrides{of_head, rows * of_head} : RowStrides{heads * of_head, of_head};
  };
  operands_.input_o_strides = strides(dim + 8, layout.heads_first);
  operands_.input_lse_strides = strides(1, layout.heads_first);
  operands_.o_strides =
      layout.in_place ? operands_.input_o_strides : strides(dim, !layout.heads_first);
  operands_.lse_strides =
      layout.in_place ? operands_.input_lse_strides : strides(2, !layout.heads_first);
  o_elements_ = size(rows * heads * (layout.in_place ? dim + 8 : dim));
  lse_elements_ = size(rows * heads * (layout.in_place ? 1 : 2));

  base::Random random(layout.seed + 17);
  for (std::int64_t i = 0; i < rows * heads; ++i) {
    MergeRow row;
    for (std::int64_t input = 0; input < problem_.inputs; ++input) {
      row.lse.push_back(3 * random.normal() + 2);
      std::vector<std::uint16_t> o;
      for (std::int64_t d = 0; d < dim; ++d) {
        o.push_back(base::from_float(problem_.dtype, random.normal()));
      }
      row.o.push_back(std::move(o));
    }
    // Rows without keys, in random inputs, in all inputs but one, or in all inputs.
    const auto only = random.below(static_cast<std::uint32_t>(problem_.inputs));
    for (std::size_t input = 0; input < row.lse.size(); ++input) {
      const bool empty = i % 9 == 2   ? random.below(2) == 0
                         : i % 9 == 5 ? input != only
                                      : i % 9 == 8;
      if (empty) row.lse[input] = -kInfinity;
    }
    rows_.push_back(std::move(row));
  }
}

void MergeCase::upload(std::int64_t rows) {
  uploaded_ = rows;
  const std::int64_t heads = problem_.heads, dim = problem_.dim_v;
  memory_.clear();
  inputs_.clear();
  const auto allocate = [&](std::int64_t bytes) {
    memory_.push_back(device_.allocate(size(bytes)));
    return memory_.back().data();
  };
  for (std::size_t input = 0; input < size(problem_.inputs); ++input) {
    auto* const o =
        static_cast<std::uint16_t*>(allocate(problem_.max_rows * heads * (dim + 8) * 2));
    auto* const lse = static_cast<float*>(allocate(problem_.max_rows * heads * 4));
    inputs_.push_back({o, lse});
    for (std::int64_t r = 0; r < rows; ++r) {
      for (std::int64_t h = 0; h < heads; ++h) {
        const MergeRow& row = at(r, h);
        std::vector<std::uint16_t> bits = row.o[input];
        const bool empty = row.lse[input] == -kInfinity;
        if (empty) std::fill(bits.begin(), bits.end(), std::uint16_t{0x7fff});
        if (!empty || layout_.nan_where_empty) {
          device_.copy_to_device(
              o + r * operands_.input_o_strides.row + h * operands_.input_o_strides.head,
              bits.data(), bits.size() * 2);
        }
        device_.copy_to_device(
            lse + r * operands_.input_lse_strides.row + h * operands_.input_lse_strides.head,
            &row.lse[input], 4);
      }
    }
  }
  if (layout_.in_place) {
    operands_.o = const_cast<void*>(inputs_[0].o);
    operands_.lse = const_cast<float*>(inputs_[0].lse);
  } else {
    const std::vector<std::uint16_t> o(o_elements_, kUntouched);
    const std::vector<float> lse(lse_elements_, kUntouchedLse);
    operands_.o = allocate(std::ssize(o) * 2);
    operands_.lse = static_cast<float*>(allocate(std::ssize(lse) * 4));
    device_.copy_to_device(operands_.o, o.data(), o.size() * 2);
    device_.copy_to_device(operands_.lse, lse.data(), lse.size() * 4);
  }
}

MergeOperands MergeCase::operands() const {
  MergeOperands made = operands_;
  made.inputs = inputs_;
  if (!layout_.want_lse) made.lse = nullptr;
  return made;
}

std::int32_t* MergeCase::put(std::int32_t value) {
  memory_.push_back(device_.allocate(4));
  device_.copy_to_device(memory_.back().data(), &value, 4);
  return static_cast<std::int32_t*>(memory_.back().data());
}

float MergeCase::lse(std::int64_t row, std::int64_t head) const {
  float value = 0;
  device_.copy_to_host(
      &value, operands_.lse + row * operands_.lse_strides.row + head * operands_.lse_strides.head,
      4);
  return value;
}

std::vector<std::uint16_t> MergeCase::o(std::int64_t row, std::int64_t head) const {
  std::vector<std::uint16_t> bits(size(problem_.dim_v));
  device_.copy_to_host(bits.data(),
                       static_cast<const std::uint16_t*>(operands_.o) +
                           row * operands_.o_strides.row + head * operands_.o_strides.head,
                       bits.size() * 2);
  return bits;
}

// If only one input of a row counts, the result must be that input. Otherwise it must be the exact
// value rounded once, apart from fp32 errors before: 2^-20 of the sum of magnitudes.
std::string MergeCase::compare(const MergeRow& row, const std::uint16_t* o, float lse) const {
  const double unit = problem_.lse_base == LseBase::kNatural ? std::numbers::log2e : 1.0;
  double largest = -kInfinity, sum = 0;
  std::vector<std::size_t> counted;
  for (std::size_t input = 0; input < row.lse.size(); ++input) {
    if (row.lse[input] == -kInfinity) continue;
    counted.push_back(input);
    largest = std::max(largest, static_cast<double>(row.lse[input]));
  }
  for (const std::size_t input : counted) sum += std::exp2((row.lse[input] - largest) * unit);
  const bool copied = counted.size() == 1;
  const double exact_lse = counted.empty() ? -kInfinity : largest + std::log2(sum) / unit;
  if (layout_.want_lse) {
    const bool right =
        copied || counted.empty()
            ? std::bit_cast<std::uint32_t>(lse) ==
                  std::bit_cast<std::uint32_t>(copied ? row.lse[counted[0]] : -kInfinity)
            : std::abs(lse - exact_lse) <= 0x1p-21 * std::max(1.0, std::abs(exact_lse));
    if (!right) return fmt::format("LSE is {}, not {}", lse, exact_lse);
  }
  for (std::size_t d = 0; d < size(problem_.dim_v); ++d) {
    if (copied || counted.empty()) {
      const std::uint16_t exact = copied ? row.o[counted[0]][d] : std::uint16_t{0};
      if (o[d] == exact) continue;
      return fmt::format("element {} is {:#x}, not {:#x}", d, o[d], exact);
    }
    double value = 0, magnitude = 0;
    for (const std::size_t input : counted) {
      const double weight = std::exp2((row.lse[input] - largest) * unit) / sum;
      const double part = weight * base::to_float(problem_.dtype, row.o[input][d]);
      value += part;
      magnitude += std::abs(part);
    }
    const double got = base::to_float(problem_.dtype, o[d]);
    if (std::abs(got - value) <= spacing(problem_.dtype, value) / 2 + 0x1p-20 * magnitude) continue;
    return fmt::format("element {} is {}, not {}", d, got, value);
  }
  return {};
}

std::string MergeCase::first_wrong() const {
  if (!layout_.in_place) {
    // The rows are removed from a copy of all memory. The rest must be unchanged.
    std::vector<std::uint16_t> o(o_elements_);
    std::vector<float> lse(lse_elements_);
    device_.copy_to_host(o.data(), operands_.o, o.size() * 2);
    device_.copy_to_host(lse.data(), operands_.lse, lse.size() * 4);
    for (std::int64_t r = 0; r < uploaded_; ++r) {
      for (std::int64_t h = 0; h < problem_.heads; ++h) {
        std::fill_n(o.begin() + r * operands_.o_strides.row + h * operands_.o_strides.head,
                    problem_.dim_v, kUntouched);
        if (!layout_.want_lse) continue;
        lse[size(r * operands_.lse_strides.row + h * operands_.lse_strides.head)] = kUntouchedLse;
      }
    }
    if (std::any_of(o.begin(), o.end(), [](std::uint16_t bits) { return bits != kUntouched; })) {
      return "rows of O that are nobody's";
    }
    if (std::any_of(lse.begin(), lse.end(), [](float value) { return value != kUntouchedLse; })) {
      return "rows of LSE that are nobody's";
    }
  }
  for (std::int64_t r = 0; r < uploaded_; ++r) {
    for (std::int64_t h = 0; h < problem_.heads; ++h) {
      const std::string text =
          compare(rows_[size(r * problem_.heads + h)], o(r, h).data(), lse(r, h));
      if (!text.empty()) return fmt::format("row {}, head {}: {}", r, h, text);
    }
  }
  return {};
}

}  // namespace annulus::test
