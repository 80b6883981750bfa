// Compares a kernel's answer with the oracle's; see annulus/oracle.h.
#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/core.h>

#include "annulus/oracle.h"
#include "attention/problem/operands.h"
#include "base/fail.h"
#include "base/half.h"

namespace annulus::inline v0 {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kLn2 = 0.6931471805599453;

// The base-2 score from which on a probability relative to a rounded row max may exceed its format.
// At 2^31 neighbouring fp32 numbers are 256 apart, so the rounding can give 2^128, beyond fp32. At
// 2^24 they are 2 apart, which with the factor of 2^8 can give 2^9, beyond e4m3.
double max_score(Dtype dtype) { return dtype == Dtype::kFloat8E4M3 ? 0x1p24 : 0x1p31; }

// One row of the answer in float64.
struct AnswerRow {
  std::vector<double> o;
  double lse = 0;  // natural logarithm
  bool has_lse = false;
  double m = 0;  // if there is a state
};

// Reads row `row` of [B, H, Sq] from the answer's state, or from O and LSE.
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

// One row of the oracle's answer.
struct ExpectedRow {
  const double* o = nullptr;
  double m = 0;
  double lse = 0;  // natural logarithm
  bool empty = false;
};

ExpectedRow expected_row(const Reference& reference, std::size_t at) {
  ExpectedRow row;
  row.o = reference.o.data() + at * static_cast<std::size_t>(reference.dim_v);
  row.m = reference.m[at];
  row.empty = reference.l[at] == 0;
  row.lse = row.empty ? -kInfinity : kLn2 * (row.m + std::log2(reference.l[at]));
  return row;
}

// The distance of a row of O from the oracle's row, as squares of L2 norms.
struct RowDistance {
  double error = 0;
  double norm = 0;  // norm of the oracle's row
};

RowDistance distance(const AnswerRow& answer, const ExpectedRow& expected) {
  RowDistance between;
  for (std::size_t d = 0; d < answer.o.size(); ++d) {
    const double difference = answer.o[d] - expected.o[d];
    between.error += difference * difference;
    between.norm += expected.o[d] * expected.o[d];
  }
  // An empty row is exactly zero: no kernel computes anything that could be rounded.
  if (!std::isfinite(between.error) || (expected.empty && between.error != 0)) {
    between.error = kInfinity;
  }
  // A difference too small for fp32 is not an error. With a large sink logit, a probability below
  // 2^-126 becomes 0, and the value that it is multiplied by may be a few times larger than 1.
  const double lost = 0x1p-122 * std::sqrt(static_cast<double>(answer.o.size()));
  if (between.error <= lost * lost) {
    between.error = 0;
  } else if (std::isfinite(between.error)) {
    between.error = std::pow(std::sqrt(between.error) - lost, 2);
  }
  return between;
}

// |difference| / max(1, |expected|) of two logarithms. An empty row must have -inf.
double logarithm_error(double answer, double expected, bool empty) {
  if (empty) return answer == -kInfinity ? 0 : kInfinity;
  const double error = std::abs(answer - expected) / std::max(1.0, std::abs(expected));
  return std::isfinite(error) ? error : kInfinity;
}

double lse_error(const AnswerRow& answer, const ExpectedRow& expected, bool is_state) {
  double error = 0;
  if (answer.has_lse) error = logarithm_error(answer.lse, expected.lse, expected.empty);
  // A carried m has to be the row max itself. With another m and a matching l, LSE would be right
  // here, but a later launch could overflow.
  if (is_state) {
    error = std::max(error, logarithm_error(answer.m, expected.m, expected.empty));
  }
  return error;
}

// The relative Frobenius error of the (batch, head) that is being read.
class HeadError {
 public:
  void add(const RowDistance& row, double grain) {
    error_ += row.error;
    // Every row counts with at least `grain`, the norm that its own error is compared with.
    // Otherwise a head of rows below the smallest normal number would fail by rounding alone.
    norm_ += std::max(row.norm, grain * grain);
  }
  // Ends the head and returns its error.
  double close() {
    const double relative = error_ > 0 ? std::sqrt(error_ / norm_) : 0;
    error_ = norm_ = 0;
    return relative;
  }

 private:
  double error_ = 0;  // sum of squares
  double norm_ = 0;   // sum of squares
};

std::string describe_wrong(const Problem& problem, std::int64_t row, double row_error,
                           double error_of_lse, const AnswerRow& answer,
                           const ExpectedRow& expected) {
  std::string text = fmt::format(
      "batch {} head {} row {}: relative error {:.3g}, LSE error {:.3g} (O[0] {:.6g} against "
      "{:.6g}, LSE {:.6g} against {:.6g})",
      row / problem.seq_q / problem.heads, row / problem.seq_q % problem.heads, row % problem.seq_q,
      row_error, error_of_lse, answer.o[0], expected.o[0], answer.lse, expected.lse);
  const double limit = max_score(problem.dtype);
  if (std::abs(expected.lse) >= kLn2 * limit && !std::isfinite(answer.o[0])) {
    text += fmt::format("; scores beyond +-{:.3g} (2^{} in base 2) have no finite powers in {}",
                        kLn2 * limit, std::ilogb(limit),
                        problem.dtype == Dtype::kFloat8E4M3 ? "8 bits" : "fp32");
  }
  return text;
}

// Throws unless everything that compare() reads is given and belongs to this problem.
void check_comparable(const Problem& problem, const Reference& reference,
                      const HostResult& result) {
  const auto rows = reference.rows.size();
  if (reference.batch != problem.batch || reference.heads != problem.heads ||
      reference.seq_q != problem.seq_q || reference.dim_v != problem.dim_v ||
      reference.o.size() != rows * static_cast<std::size_t>(problem.dim_v) ||
      reference.m.size() != rows || reference.l.size() != rows ||
      reference.tainted.size() != rows) {
    base::fail(ErrorCode::kInvalidArgument,
               "the reference is of B {}, H {}, Sq {}, Dv {} and has {} rows with {} numbers in o, "
               "{} in m, {} in l and {} in tainted; the problem is of B {}, H {}, Sq {}, Dv {}: "
               "compute it for this problem",
               reference.batch, reference.heads, reference.seq_q, reference.dim_v, rows,
               reference.o.size(), reference.m.size(), reference.l.size(), reference.tainted.size(),
               problem.batch, problem.heads, problem.seq_q, problem.dim_v);
  }
  if (rows == 0) return;
  if (result.state == nullptr && result.o == nullptr) {
    base::fail(ErrorCode::kInvalidArgument, "the result has neither O nor a state to compare");
  }
  const std::int64_t all = problem.batch * problem.heads * problem.seq_q;
  for (std::size_t at = 0; at < rows; ++at) {
    const std::int64_t row = reference.rows[at];
    if (row >= 0 && row < all && (at == 0 || row > reference.rows[at - 1])) continue;
    base::fail(ErrorCode::kInvalidArgument,
               "rows[{}] of the reference is {}; rows ascend and are below B H Sq = {}", at, row,
               all);
  }
  if (result.state == nullptr && result.o_strides == Strides{} && all > 1) {
    const Strides contiguous = Strides::bshd(problem.seq_q, problem.heads, problem.dim_v);
    base::fail(
        ErrorCode::kInvalidArgument,
        "the result's o_strides are all 0, so its {} rows would be one row; set them, to {}, "
        "{} and {} for batch, head and row if O is contiguous in the order B, S, H, D",
        all, contiguous.batch, contiguous.head, contiguous.row);
  }
  if (result.state != nullptr) {
    attention::check_host_state("of the result", *result.state, all, problem.dim_v);
  }
}

}  // namespace

Tolerance tolerance(Dtype dtype) {
  if (dtype == Dtype::kFloat8E4M3) return {8e-2, 6.5e-2, 1e-3};
  if (dtype == Dtype::kFloat16) return {2.5e-3, 1e-3, 1e-4};
  return {1e-2, 4e-3, 1e-4};
}

// Compares the rows that the oracle computed. `grain` is the norm of a row whose elements are all
// the smallest normal number: errors of rows below it are taken relative to it, because elements
// that small are rounded coarsely. Tainted and excused rows are only counted.
Comparison compare(const Problem& problem, const Reference& expected, const HostResult& result,
                   const std::function<bool(std::int64_t)>& excused) {
  check_comparable(problem, expected, result);
  Comparison comparison;
  const Tolerance allowed = tolerance(problem.dtype);
  const double grain =
      smallest_normal(problem.output_dtype()) * std::sqrt(static_cast<double>(problem.dim_v));
  AnswerRow answer;
  HeadError head;
  for (std::size_t at = 0; at < expected.rows.size(); ++at) {
    const std::int64_t row = expected.rows[at];
    // Rows ascend, so all rows of a (batch, head) follow one another.
    if (at > 0 && row / problem.seq_q != expected.rows[at - 1] / problem.seq_q) {
      comparison.error_o = std::max(comparison.error_o, head.close());
    }
    if (expected.tainted[at] || (excused && excused(row))) {
      ++comparison.tainted_rows;
      continue;
    }
    ++comparison.checked_rows;
    read_row(problem, result, row, &answer);
    const ExpectedRow of_oracle = expected_row(expected, at);
    const RowDistance between = distance(answer, of_oracle);
    head.add(between, grain);
    const double row_error = std::sqrt(between.error) / std::max(std::sqrt(between.norm), grain);
    const double error_of_lse = lse_error(answer, of_oracle, result.state != nullptr);
    comparison.error_row_max = std::max(comparison.error_row_max, row_error);
    comparison.error_lse = std::max(comparison.error_lse, error_of_lse);
    if (row_error <= allowed.row && error_of_lse <= allowed.lse) continue;
    if (comparison.wrong_rows++ == 0) {
      comparison.first_wrong =
          describe_wrong(problem, row, row_error, error_of_lse, answer, of_oracle);
    }
  }
  comparison.error_o = std::max(comparison.error_o, head.close());
  comparison.within_tolerance =
      comparison.wrong_rows == 0 && comparison.error_row_max <= allowed.row &&
      comparison.error_o <= allowed.frobenius && comparison.error_lse <= allowed.lse;
  return comparison;
}

}  // namespace annulus::inline v0
