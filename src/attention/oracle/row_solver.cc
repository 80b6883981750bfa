#include "attention/oracle/row_solver.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "attention/score/score.h"
#include "attention/score/score_code.h"
#include "base/work.h"

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__SANITIZE_THREAD__)
// The loops below take most of the time, so the loader picks the version with the widest
// instructions of the processor. There is only one version with the thread sanitizer, because the
// loader picks before the sanitizer is initialised.
#define ANNULUS_WIDE __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define ANNULUS_WIDE
#endif

namespace annulus::attention {
namespace {

constexpr double kLog2E = 1.4426950408889634;
constexpr double kMinusInfinity = -std::numeric_limits<double>::infinity();
// The time of a pair, about 100 ns, as annulus/oracle.h states.
constexpr std::int64_t kStepsOfQuestion = 20;
constexpr std::size_t kWide = 16;  // every head dim is a multiple of this

ANNULUS_WIDE double dot(const double* a, const float* b, std::size_t count) {
  double sums[kWide] = {};  // separate sums, because the compiler may not reorder one sum
  for (std::size_t i = 0; i < count; i += kWide) {
    for (std::size_t j = 0; j < kWide; ++j) sums[j] += a[i + j] * static_cast<double>(b[i + j]);
  }
  double sum = 0;
  for (const double part : sums) sum += part;
  return sum;
}

ANNULUS_WIDE void add_scaled(double* sum, double weight, const float* values, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) sum[i] += weight * static_cast<double>(values[i]);
}

}  // namespace

void Matrix::load(const HostRows& from, std::int64_t rows, std::int64_t dim) {
  values.resize(static_cast<std::size_t>(rows * dim));
  scales.resize(static_cast<std::size_t>(rows));
  tainted.assign(static_cast<std::size_t>(rows), 0);
  for (std::int64_t row = 0; row < rows; ++row) {
    float* to = values.data() + row * dim;
    const auto index = static_cast<std::size_t>(row);
    scales[index] = from.scale(row);
    bool finite = std::isfinite(scales[index]);
    for (std::int64_t d = 0; d < dim; ++d) {
      to[d] = from.element(row, d);
      finite = finite && std::isfinite(to[d]);
    }
    tainted[index] = !finite;
  }
}

VisibleKeys::VisibleKeys(const Problem& problem, Pattern branch)
    : problem_(problem),
      branch_(std::move(branch)),
      context_(problem.context()),
      words_(static_cast<std::size_t>(problem.seq_k + 63) / 64) {
  constexpr std::size_t kMaxBytes = std::size_t{1} << 28;
  const auto rows = static_cast<std::size_t>(problem.seq_q);
  if (branch_.distinct_heads(problem.heads) == 1 && branch_.distinct_batches(problem.batch) <= 1 &&
      rows * words_ * 8 <= kMaxBytes) {
    kept_.resize(rows * words_);
    known_.resize(rows);
  }
}

const std::vector<std::uint64_t>& VisibleKeys::row(std::int64_t batch, std::int64_t head,
                                                   std::int64_t row,
                                                   std::vector<std::uint64_t>* scratch) {
  scratch->resize(words_);
  const auto index = static_cast<std::size_t>(row);
  if (!known_.empty() && known_[index]) {
    std::copy_n(kept_.data() + index * words_, words_, scratch->data());
    return *scratch;
  }
  PatternContext context = context_;
  context.batch = batch;
  const std::int64_t q = problem_.q_position() + row;
  for (std::size_t word = 0; word < words_; ++word) {
    const auto first = static_cast<std::int64_t>(word * 64);
    const std::int64_t count = std::min<std::int64_t>(64, problem_.seq_k - first);
    base::charge(kStepsOfQuestion * count);
    std::uint64_t bits = 0;
    for (std::int64_t i = 0; i < count; ++i) {
      const bool visible = branch_.visible(head, q, problem_.k_position() + first + i, context);
      bits |= static_cast<std::uint64_t>(visible) << i;
    }
    (*scratch)[word] = bits;
  }
  if (!known_.empty()) {
    std::copy_n(scratch->data(), words_, kept_.data() + index * words_);
    known_[index] = 1;
  }
  return *scratch;
}

RowSolver::RowSolver(const Problem& problem, std::vector<VisibleKeys>& branches)
    : problem_(problem),
      branches_(branches),
      scale_(problem.effective_scale()),
      steps_of_pair_(1 + (problem.dim_qk + problem.dim_v) / 8),
      query_(static_cast<std::size_t>(problem.dim_qk)) {}

void RowSolver::solve(std::int64_t batch, std::int64_t head, std::int64_t row, const Matrix& q,
                      const Matrix& k, const Matrix& v, const Carried& carried, RowAnswer* answer) {
  const auto dim_v = static_cast<std::size_t>(problem_.dim_v);
  answer->m = carried.l != 0 ? carried.m : kMinusInfinity;
  collect_scores(batch, head, row, q, k, v, answer);
  if (carried.l != 0) add_carried(carried, answer);
  for (std::size_t i = 0; i < keys_.size(); ++i) {
    const double weight = std::exp2(scores_[i] - answer->m);
    answer->l += weight;
    add_scaled(answer->o, weight * v.scales[keys_[i]], v.values.data() + keys_[i] * dim_v, dim_v);
  }
  // If a state is carried out, a later launch adds the sink logit, so it is added only once.
  if (!problem_.score.sink_logit.empty() && !problem_.carry_out) add_sink(head, answer);
  if (answer->l != 0) {
    for (std::size_t d = 0; d < dim_v; ++d) answer->o[d] /= answer->l;
  }
}

void RowSolver::collect_scores(std::int64_t batch, std::int64_t head, std::int64_t row,
                               const Matrix& q, const Matrix& k, const Matrix& v,
                               RowAnswer* answer) {
  const auto dim_qk = static_cast<std::size_t>(problem_.dim_qk);
  const float* query = q.values.data() + static_cast<std::size_t>(row) * dim_qk;
  std::copy(query, query + dim_qk, query_.begin());
  keys_.clear();
  scores_.clear();
  // A key counts once for each branch of a sum that sees it.
  for (VisibleKeys& branch : branches_) {
    const std::vector<std::uint64_t>& visible = branch.row(batch, head, row, &bits_);
    for (std::size_t word = 0; word < visible.size(); ++word) {
      base::charge(1 + std::popcount(visible[word]) * steps_of_pair_);
      for (std::uint64_t bits = visible[word]; bits != 0; bits &= bits - 1) {
        const std::size_t key = word * 64 + static_cast<std::size_t>(std::countr_zero(bits));
        const double product = scale_ * q.scales[static_cast<std::size_t>(row)] * k.scales[key] *
                               dot(query_.data(), k.values.data() + key * dim_qk, dim_qk);
        const double score = final_score(batch, head, row, static_cast<std::int64_t>(key), product,
                                         &answer->tainted);
        // A score expression may mask a key by -inf, as if the pattern did not show it.
        if (score == kMinusInfinity && problem_.score.score_mod) continue;
        const double t = score * kLog2E;
        keys_.push_back(key);
        scores_.push_back(t);
        answer->m = std::max(answer->m, t);
        answer->tainted = answer->tainted || k.tainted[key] || v.tainted[key];
      }
    }
  }
  answer->tainted = answer->tainted || (!keys_.empty() && q.tainted[static_cast<std::size_t>(row)]);
}

double RowSolver::final_score(std::int64_t batch, std::int64_t head, std::int64_t row,
                              std::int64_t key, double score, bool* tainted) const {
  const std::int64_t q = problem_.q_position() + row, k = problem_.k_position() + key;
  if (const double cap = problem_.score.softcap; cap > 0) score = cap * std::tanh(score / cap);
  score += position_terms(problem_.score, head, k - q);
  if (!problem_.score.score_mod) return score;
  score = evaluate(*problem_.score.score_mod, {score, batch, head, q, k});
  *tainted = *tainted || (score != kMinusInfinity && !std::isfinite(score));
  return score;
}

void RowSolver::add_carried(const Carried& carried, RowAnswer* answer) const {
  const auto dim_v = static_cast<std::size_t>(problem_.dim_v);
  const double weight = std::exp2(carried.m - answer->m);
  answer->l = weight * carried.l;
  add_scaled(answer->o, weight, carried.acc, dim_v);
  answer->tainted = answer->tainted || !std::isfinite(answer->l) || !std::isfinite(carried.m) ||
                    !std::all_of(carried.acc, carried.acc + dim_v,
                                 [](float value) { return std::isfinite(value); });
}

void RowSolver::add_sink(std::int64_t head, RowAnswer* answer) const {
  const double sink = of_head(problem_.score.sink_logit, head) * kLog2E;
  const double row_max = std::max(answer->m, sink);
  const double rescale = answer->l != 0 ? std::exp2(answer->m - row_max) : 0;
  for (std::size_t d = 0; d < static_cast<std::size_t>(problem_.dim_v); ++d) {
    answer->o[d] *= rescale;
  }
  answer->l = answer->l * rescale + std::exp2(sink - row_max);
  answer->m = row_max;
}

}  // namespace annulus::attention
