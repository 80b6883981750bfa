#include "attention/reference.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <mutex>
#include <set>

#include "attention/score.h"
#include "attention/score_code.h"
#include "base/half.h"
#include "base/random.h"
#include "base/thread_pool.h"

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__SANITIZE_THREAD__)
// The loops below are most of the time; the loader picks the widest version the processor has. It
// does so before the thread sanitizer is awake.
#define ANNULUS_WIDE __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define ANNULUS_WIDE
#endif

namespace annulus::attention {
namespace {

constexpr double kMinusInfinity = -std::numeric_limits<double>::infinity();
constexpr std::size_t kWide = 16;  // every head dim is a multiple
constexpr std::int64_t kRowsOfTask = 8;

ANNULUS_WIDE double dot(const double* a, const float* b, std::size_t count) {
  double sums[kWide] = {};  // separate sums, since the compiler may not reorder one
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

// One (batch, head) of a tensor as [rows, dim] floats, and which rows hold a value that is not
// finite.
struct Matrix {
  std::vector<float> values;
  std::vector<double> scales;  // of each row
  std::vector<std::uint8_t> tainted;

  void load(const HostRows& from, std::int64_t rows, std::int64_t dim) {
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
};

// The rows of one (batch, head) that are computed, ascending.
std::vector<std::int64_t> pick_rows(const Problem& problem, std::int64_t head_index, bool all,
                                    const ReferenceOptions& options) {
  std::vector<std::int64_t> rows;
  const std::int64_t tile = options.tile_rows;
  if (all || problem.seq_q <= 2 * tile + options.sampled_rows) {
    for (std::int64_t row = 0; row < problem.seq_q; ++row) rows.push_back(row);
    return rows;
  }
  std::set<std::int64_t> picked;
  const std::int64_t last_tile = (problem.seq_q - 1) / tile * tile;
  for (std::int64_t row = 0; row < tile; ++row) picked.insert(row);
  for (std::int64_t row = last_tile; row < problem.seq_q; ++row) picked.insert(row);
  base::Random random(options.seed * 0x9e3779b97f4a7c15u + static_cast<std::uint64_t>(head_index));
  const std::size_t wanted = picked.size() + static_cast<std::size_t>(options.sampled_rows);
  while (picked.size() < wanted) {
    picked.insert(random.below(static_cast<std::uint32_t>(problem.seq_q)));
  }
  return {picked.begin(), picked.end()};
}

// Which keys each row sees through one branch of the pattern, one bit per pair, asked of the
// pattern pair by pair. Where all heads see the same, the bits of a row are kept for the next
// (batch, head).
class VisibleKeys {
 public:
  VisibleKeys(const Problem& problem, Pattern branch)
      : problem_(problem),
        branch_(std::move(branch)),
        context_(problem.context()),
        words_(static_cast<std::size_t>(problem.seq_k + 63) / 64) {
    constexpr std::size_t kMostBytes = std::size_t{1} << 28;
    const auto rows = static_cast<std::size_t>(problem.seq_q);
    if (branch_.distinct_heads(problem.heads) == 1 && rows * words_ * 8 <= kMostBytes) {
      kept_.resize(rows * words_);
      known_.resize(rows);
    }
  }

  // Valid until the next call with the same scratch. A row may be asked for by one thread at a
  // time.
  const std::vector<std::uint64_t>& row(std::int64_t head, std::int64_t row,
                                        std::vector<std::uint64_t>* scratch) {
    scratch->resize(words_);
    const auto index = static_cast<std::size_t>(row);
    if (!known_.empty() && known_[index]) {
      std::copy_n(kept_.data() + index * words_, words_, scratch->data());
      return *scratch;
    }
    const std::int64_t q = problem_.q_position() + row;
    for (std::size_t word = 0; word < words_; ++word) {
      const auto first = static_cast<std::int64_t>(word * 64);
      const std::int64_t count = std::min<std::int64_t>(64, problem_.seq_k - first);
      std::uint64_t bits = 0;
      for (std::int64_t i = 0; i < count; ++i) {
        const bool visible = branch_.visible(head, q, problem_.k_position() + first + i, context_);
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

 private:
  const Problem& problem_;
  Pattern branch_;
  PatternContext context_;
  std::size_t words_;  // of a row
  std::vector<std::uint64_t> kept_;
  std::vector<std::uint8_t> known_;
};

// The state that a row starts from.
struct Carried {
  double m = kMinusInfinity;
  double l = 0;
  const float* acc = nullptr;
};

struct RowAnswer {
  double* o = nullptr;  // [Dv], zeros on entry
  double m = kMinusInfinity;
  double l = 0;
  bool tainted = false;
};

class RowSolver {
 public:
  RowSolver(const Problem& problem, std::vector<VisibleKeys>& branches)
      : problem_(problem),
        branches_(branches),
        scale_(problem.effective_scale()),
        query_(static_cast<std::size_t>(problem.dim_qk)) {}

  void solve(std::int64_t batch, std::int64_t head, std::int64_t row, const Matrix& q,
             const Matrix& k, const Matrix& v, const Carried& carried, RowAnswer* answer) {
    const auto dim_qk = static_cast<std::size_t>(problem_.dim_qk);
    const auto dim_v = static_cast<std::size_t>(problem_.dim_v);
    const float* query = q.values.data() + static_cast<std::size_t>(row) * dim_qk;
    std::copy(query, query + dim_qk, query_.begin());
    bool tainted = false;
    keys_.clear();
    scores_.clear();
    double m = carried.l != 0 ? carried.m : kMinusInfinity;
    const std::int64_t first_q = problem_.q_position();
    const std::int64_t first_k = problem_.k_position();
    // A key that several branches of a sum see counts as often.
    for (VisibleKeys& branch : branches_) {
      const std::vector<std::uint64_t>& visible = branch.row(head, row, &bits_);
      for (std::size_t word = 0; word < visible.size(); ++word) {
        for (std::uint64_t bits = visible[word]; bits != 0; bits &= bits - 1) {
          const std::size_t index = word * 64 + static_cast<std::size_t>(std::countr_zero(bits));
          double score = scale_ * q.scales[static_cast<std::size_t>(row)] * k.scales[index] *
                         dot(query_.data(), k.values.data() + index * dim_qk, dim_qk);
          const double cap = problem_.score.softcap;
          if (cap > 0) score = cap * std::tanh(score / cap);
          score += position_terms(problem_.score, head,
                                  first_k + static_cast<std::int64_t>(index) - first_q - row);
          if (problem_.score.score_mod) {
            score = evaluate(
                *problem_.score.score_mod,
                {score, batch, head, first_q + row, first_k + static_cast<std::int64_t>(index)});
            if (score == kMinusInfinity) continue;  // a mask of the expression's own
            tainted = tainted || !std::isfinite(score);
          }
          const double t = score * 1.4426950408889634;  // log2(e)
          keys_.push_back(index);
          scores_.push_back(t);
          m = std::max(m, t);
          tainted = tainted || k.tainted[index] || v.tainted[index];
        }
      }
    }
    tainted = tainted || (!keys_.empty() && q.tainted[static_cast<std::size_t>(row)]);
    double l = 0;
    if (carried.l != 0) {
      const double weight = std::exp2(carried.m - m);
      l = weight * carried.l;
      add_scaled(answer->o, weight, carried.acc, dim_v);
      tainted = tainted || !std::isfinite(l) || !std::isfinite(carried.m) ||
                !std::all_of(carried.acc, carried.acc + dim_v,
                             [](float value) { return std::isfinite(value); });
    }
    for (std::size_t i = 0; i < keys_.size(); ++i) {
      const double weight = std::exp2(scores_[i] - m);
      l += weight;
      add_scaled(answer->o, weight * v.scales[keys_[i]], v.values.data() + keys_[i] * dim_v, dim_v);
    }
    if (!problem_.score.sink_logit.empty() && !problem_.carry_out) {
      // One more score, and no value to go with it.
      const double sink = of_head(problem_.score.sink_logit, head) * 1.4426950408889634;
      const double peak = std::max(m, sink);
      const double shrink = l != 0 ? std::exp2(m - peak) : 0;
      for (std::size_t d = 0; d < dim_v; ++d) answer->o[d] *= shrink;
      l = l * shrink + std::exp2(sink - peak);
      m = peak;
    }
    if (l != 0) {
      for (std::size_t d = 0; d < dim_v; ++d) answer->o[d] /= l;
    }
    answer->m = m;
    answer->l = l;
    answer->tainted = tainted;
  }

 private:
  const Problem& problem_;
  std::vector<VisibleKeys>& branches_;
  double scale_;
  std::vector<double> query_;
  std::vector<std::uint64_t> bits_;
  std::vector<std::size_t> keys_;
  std::vector<double> scores_;
};

HostRows rows_of(const Problem& problem, const void* data, const Strides& strides,
                 std::int64_t batch, std::int64_t head, const float* scales, std::int64_t block,
                 std::int64_t rows, std::int64_t heads) {
  const std::int64_t blocks = block == 0 ? 1 : (rows + block - 1) / block;
  const std::int64_t first = batch * strides.batch + head * strides.head;
  const auto bytes = static_cast<std::int64_t>(size_in_bytes(problem.dtype));
  return {data == nullptr ? nullptr : static_cast<const std::byte*>(data) + first * bytes,
          strides.row, problem.dtype,
          scales == nullptr ? nullptr : scales + (batch * heads + head) * blocks, block};
}

Carried carried_of(const HostState* state, std::int64_t row) {
  if (state == nullptr) return {};
  const auto index = static_cast<std::size_t>(row);
  return {static_cast<double>(state->m[index]), static_cast<double>(state->l[index]),
          state->acc.data() + row * state->dim_v};
}

}  // namespace

float HostRows::element(std::int64_t row, std::int64_t column) const {
  const std::int64_t index = row * row_stride + column;
  if (dtype == Dtype::kFloat8E4M3) {
    return base::e4m3_to_float(std::to_integer<std::uint8_t>(data[index]));
  }
  std::uint16_t bits = 0;
  std::memcpy(&bits, data + 2 * index, 2);
  return base::to_float(dtype, bits);
}

HostRows q_rows(const Problem& problem, const HostInputs& inputs, std::int64_t batch,
                std::int64_t head) {
  return rows_of(problem, inputs.q, inputs.q_strides, batch, head, inputs.scale_q,
                 problem.scale_blocks.q, problem.seq_q, problem.heads);
}
HostRows k_rows(const Problem& problem, const HostInputs& inputs, std::int64_t batch,
                std::int64_t kv_head) {
  return rows_of(problem, inputs.k, inputs.k_strides, batch, kv_head, inputs.scale_k,
                 problem.scale_blocks.k, problem.seq_k, problem.kv_heads);
}
HostRows v_rows(const Problem& problem, const HostInputs& inputs, std::int64_t batch,
                std::int64_t kv_head) {
  return rows_of(problem, inputs.v, inputs.v_strides, batch, kv_head, inputs.scale_v,
                 problem.scale_blocks.v, problem.seq_k, problem.kv_heads);
}

Reference reference(const Problem& problem, const HostInputs& inputs, base::ThreadPool& pool,
                    const ReferenceOptions& options) {
  Reference oracle;
  oracle.batch = problem.batch;
  oracle.heads = problem.heads;
  oracle.seq_q = problem.seq_q;
  oracle.dim_v = problem.dim_v;
  const double pairs = options.visible_pairs.value_or(
      static_cast<double>(problem.batch * problem.heads) * static_cast<double>(problem.seq_q) *
      static_cast<double>(problem.seq_k));
  const bool all = pairs <= static_cast<double>(options.most_pairs);
  if (problem.seq_q == 0) return oracle;  // however many heads have no row
  std::vector<std::size_t> first_of_head = {0};
  for (std::int64_t bh = 0; bh < problem.batch * problem.heads; ++bh) {
    for (const std::int64_t row : pick_rows(problem, bh, all, options)) {
      oracle.rows.push_back(bh * problem.seq_q + row);
    }
    first_of_head.push_back(oracle.rows.size());
  }
  oracle.o.assign(oracle.rows.size() * static_cast<std::size_t>(problem.dim_v), 0.0);
  oracle.m.assign(oracle.rows.size(), kMinusInfinity);
  oracle.l.assign(oracle.rows.size(), 0.0);
  oracle.tainted.assign(oracle.rows.size(), 0);

  std::vector<VisibleKeys> branches;
  for (const Pattern& branch : problem.pattern.branches()) branches.emplace_back(problem, branch);
  std::vector<RowSolver> solvers(static_cast<std::size_t>(pool.threads()),
                                 RowSolver(problem, branches));
  const std::int64_t group = problem.heads / problem.kv_heads;
  Matrix q, k, v;
  std::mutex progress_mutex;
  std::atomic<std::size_t> done = 0;
  for (std::int64_t bh = 0; bh < problem.batch * problem.heads; ++bh) {
    const std::int64_t batch = bh / problem.heads;
    const std::int64_t head = bh % problem.heads;
    q.load(q_rows(problem, inputs, batch, head), problem.seq_q, problem.dim_qk);
    if (head % group == 0) {
      k.load(k_rows(problem, inputs, batch, head / group), problem.seq_k, problem.dim_qk);
      v.load(v_rows(problem, inputs, batch, head / group), problem.seq_k, problem.dim_v);
    }
    const std::size_t first = first_of_head[static_cast<std::size_t>(bh)];
    const std::size_t count = first_of_head[static_cast<std::size_t>(bh) + 1] - first;
    const std::int64_t tasks = (static_cast<std::int64_t>(count) + kRowsOfTask - 1) / kRowsOfTask;
    pool.parallel_for(tasks, [&](std::int64_t task, int worker) {
      const std::size_t begin = first + static_cast<std::size_t>(task * kRowsOfTask);
      const std::size_t end = std::min(begin + kRowsOfTask, first + count);
      for (std::size_t at = begin; at < end; ++at) {
        RowAnswer answer;
        answer.o = oracle.o.data() + at * static_cast<std::size_t>(problem.dim_v);
        solvers[static_cast<std::size_t>(worker)].solve(
            batch, head, oracle.rows[at] - bh * problem.seq_q, q, k, v,
            carried_of(problem.carry_in ? inputs.state_in : nullptr, oracle.rows[at]), &answer);
        oracle.m[at] = answer.m;
        oracle.l[at] = answer.l;
        oracle.tainted[at] = answer.tainted;
      }
      const std::size_t now = done += end - begin;
      if (options.progress) {
        const std::lock_guard lock(progress_mutex);
        options.progress(static_cast<double>(now) / static_cast<double>(oracle.rows.size()));
      }
    });
  }
  return oracle;
}

}  // namespace annulus::attention
