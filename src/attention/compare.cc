// Holds a kernel's answer against the oracle's; see reference.h.
#include <algorithm>
#include <cmath>
#include <limits>

#include "attention/reference.h"
#include "base/half.h"

#include <fmt/core.h>

namespace annulus::attention {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kLn2 = 0.6931471805599453;

// Scores in base 2 from which on a power relative to a rounded peak may be more than can be held:
// neighbouring fp32 numbers are 256 apart, and a power 2^128; with e4m3 2, and 2^9.
double most_score(Dtype dtype) { return dtype == Dtype::kFloat8E4M3 ? 0x1p24 : 0x1p31; }

// One row of the answer, widened.
struct AnswerRow {
  std::vector<double> o;
  double lse = 0;  // natural
  bool has_lse = false;
  double m = 0;  // with a state
};

void read_row(const Problem& problem, const HostResult& result, std::int64_t row, AnswerRow* to) {
  const auto dim = static_cast<std::size_t>(problem.dim_v);
  const auto index = static_cast<std::size_t>(row);
  to->o.resize(dim);
  if (result.state != nullptr) {
    const double l = static_cast<double>(result.state->l[index]);
    to->m = static_cast<double>(result.state->m[index]);
    to->lse = l == 0 ? -kInfinity : kLn2 * (to->m + std::log2(l));
    to->has_lse = true;
    for (std::size_t d = 0; d < dim; ++d) {
      const double acc = static_cast<double>(result.state->acc[index * dim + d]);
      to->o[d] = l == 0 ? acc : acc / l;
    }
    return;
  }
  const std::int64_t i = row % problem.seq_q;
  const std::int64_t head = row / problem.seq_q % problem.heads;
  const std::int64_t batch = row / problem.seq_q / problem.heads;
  const Strides& strides = result.o_strides;
  const std::uint16_t* from =
      result.o + batch * strides.batch + head * strides.head + i * strides.row;
  for (std::size_t d = 0; d < dim; ++d) {
    to->o[d] = static_cast<double>(base::to_float(problem.output_dtype(), from[d]));
  }
  to->has_lse = result.lse != nullptr;
  if (to->has_lse) {
    to->lse = static_cast<double>(result.lse[index]);
    if (problem.lse_base == LseBase::kTwo) to->lse *= kLn2;
  }
}

double smallest_normal(Dtype dtype) { return dtype == Dtype::kFloat16 ? 0x1p-14 : 0x1p-126; }

}  // namespace

Tolerance tolerance(Dtype dtype) {
  if (dtype == Dtype::kFloat8E4M3) return {8e-2, 6.5e-2, 1e-3};
  if (dtype == Dtype::kFloat16) return {2.5e-3, 1e-3, 1e-4};
  return {1e-2, 4e-3, 1e-4};
}

Comparison compare(const Problem& problem, const Reference& oracle, const HostResult& result,
                   const std::function<bool(std::int64_t)>& tainted) {
  Comparison comparison;
  const Tolerance law = tolerance(problem.dtype);
  const auto dim = static_cast<std::size_t>(problem.dim_v);
  const double grain =
      smallest_normal(problem.output_dtype()) * std::sqrt(static_cast<double>(dim));
  AnswerRow answer;
  double head_error = 0;  // of the (batch, head) that is being read, squared
  double head_norm = 0;
  std::int64_t current = -1;
  const auto close_head = [&] {
    if (current < 0) return;
    if (head_error > 0) {
      comparison.error_o = std::max(comparison.error_o, std::sqrt(head_error / head_norm));
    }
    head_error = head_norm = 0;
  };
  for (std::size_t at = 0; at < oracle.rows.size(); ++at) {
    const std::int64_t row = oracle.rows[at];
    if (row / oracle.seq_q != current) {
      close_head();
      current = row / oracle.seq_q;
    }
    if (oracle.tainted[at] || (tainted && tainted(row))) {
      ++comparison.tainted_rows;
      continue;
    }
    ++comparison.checked_rows;
    read_row(problem, result, row, &answer);
    const double* expected = oracle.o.data() + at * dim;
    double error = 0;
    double norm = 0;
    for (std::size_t d = 0; d < dim; ++d) {
      const double difference = answer.o[d] - expected[d];
      error += difference * difference;
      norm += expected[d] * expected[d];
    }
    const bool empty = oracle.l[at] == 0;
    if (!std::isfinite(error) || (empty && error != 0)) error = kInfinity;
    head_error += error;
    // Of each row at least what one of its own error is held against: a head of many rows below the
    // smallest normal number has the rounding of all of them.
    head_norm += std::max(norm, grain * grain);
    const double row_error = std::sqrt(error) / std::max(std::sqrt(norm), grain);
    double lse_error = 0;
    const double expected_lse =
        empty ? -kInfinity : kLn2 * (oracle.m[at] + std::log2(oracle.l[at]));
    if (answer.has_lse) {
      if (empty) {
        lse_error = answer.lse == -kInfinity ? 0 : kInfinity;
      } else {
        lse_error = std::abs(answer.lse - expected_lse) / std::max(1.0, std::abs(expected_lse));
        if (!std::isfinite(lse_error)) lse_error = kInfinity;
      }
    }
    if (result.state != nullptr) {  // m is the maximum itself, whatever l makes up for
      const double m_error =
          empty ? (answer.m == -kInfinity ? 0 : kInfinity)
                : std::abs(answer.m - oracle.m[at]) / std::max(1.0, std::abs(oracle.m[at]));
      lse_error = std::max(lse_error, std::isfinite(m_error) ? m_error : kInfinity);
    }
    comparison.error_row_max = std::max(comparison.error_row_max, row_error);
    comparison.error_lse = std::max(comparison.error_lse, lse_error);
    if (row_error > law.row || lse_error > law.lse) {
      if (comparison.wrong_rows++ == 0) {
        comparison.first_wrong = fmt::format(
            "batch {} head {} row {}: relative error {:.3g}, LSE error {:.3g} (O[0] {:.6g} against "
            "{:.6g}, LSE {:.6g} against {:.6g})",
            row / oracle.seq_q / oracle.heads, row / oracle.seq_q % oracle.heads,
            row % oracle.seq_q, row_error, lse_error, answer.o[0], expected[0], answer.lse,
            expected_lse);
        const double most = most_score(problem.dtype);
        if (std::abs(expected_lse) >= kLn2 * most && !std::isfinite(answer.o[0])) {
          comparison.first_wrong += fmt::format(
              "; scores beyond +-{:.3g} (2^{} in base 2) have no finite powers in {}", kLn2 * most,
              std::ilogb(most), problem.dtype == Dtype::kFloat8E4M3 ? "8 bits" : "fp32");
        }
      }
    }
  }
  close_head();
  comparison.within_law = comparison.wrong_rows == 0 && comparison.error_row_max <= law.row &&
                          comparison.error_o <= law.frobenius && comparison.error_lse <= law.lse;
  return comparison;
}

}  // namespace annulus::attention
