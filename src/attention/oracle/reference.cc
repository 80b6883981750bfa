#include "attention/oracle/reference.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <mutex>
#include <set>

#include "attention/problem/operands.h"
#include "attention/score/score.h"
#include "attention/score/score_code.h"
#include "base/fail.h"
#include "base/half.h"
#include "base/math.h"
#include "base/random.h"
#include "base/thread_pool.h"

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__SANITIZE_THREAD__)
// The loops below take most of the time, so the loader picks the widest version that the processor
// has. Not with the thread sanitizer: the loader picks before the sanitizer is initialised.
#define ANNULUS_WIDE __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define ANNULUS_WIDE
#endif

namespace annulus::attention {
namespace {

constexpr double kLog2E = 1.4426950408889634;
constexpr double kMinusInfinity = -std::numeric_limits<double>::infinity();
constexpr std::size_t kWide = 16;  // every head dim is a multiple of it
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

// One (batch, head) of a tensor as [rows, dim] floats without their scales, and which rows have a
// value or a scale that is not finite.
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

// The rows of one (batch, head) that are computed, ascending: all, or the first tile, the last tile
// and a random sample, seeded for each head.
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

// Which keys each row sees through one branch of the pattern, one bit for each pair. The pattern is
// asked pair by pair. If all heads of all batches see the same, the bits of a row are kept
// for the next (batch, head), unless they would take more than 256 MB.
class VisibleKeys {
 public:
  VisibleKeys(const Problem& problem, Pattern branch)
      : problem_(problem),
        branch_(std::move(branch)),
        context_(problem.context()),
        words_(static_cast<std::size_t>(problem.seq_k + 63) / 64) {
    constexpr std::size_t kMaxBytes = std::size_t{1} << 28;
    const auto rows = static_cast<std::size_t>(problem.seq_q);
    if (branch_.distinct_heads(problem.heads) == 1 &&
        branch_.distinct_batches(problem.batch) <= 1 && rows * words_ * 8 <= kMaxBytes) {
      kept_.resize(rows * words_);
      known_.resize(rows);
    }
  }

  // The bits of a row, valid until the next call with the same scratch. Only one thread at a time
  // may ask for a row, as it may write the bits that are kept.
  const std::vector<std::uint64_t>& row(std::int64_t batch, std::int64_t head, std::int64_t row,
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
    const auto dim_v = static_cast<std::size_t>(problem_.dim_v);
    answer->m = carried.l != 0 ? carried.m : kMinusInfinity;
    collect_scores(batch, head, row, q, k, v, answer);
    if (carried.l != 0) add_carried(carried, answer);
    for (std::size_t i = 0; i < keys_.size(); ++i) {
      const double weight = std::exp2(scores_[i] - answer->m);
      answer->l += weight;
      add_scaled(answer->o, weight * v.scales[keys_[i]], v.values.data() + keys_[i] * dim_v, dim_v);
    }
    // A state that is carried out meets the sink logit in a later launch, and only once.
    if (!problem_.score.sink_logit.empty() && !problem_.carry_out) add_sink(head, answer);
    if (answer->l != 0) {
      for (std::size_t d = 0; d < dim_v; ++d) answer->o[d] /= answer->l;
    }
  }

 private:
  // Fills keys_ and scores_ with the keys that the row sees and their base-2 scores, and raises
  // answer->m to the row max.
  void collect_scores(std::int64_t batch, std::int64_t head, std::int64_t row, const Matrix& q,
                      const Matrix& k, const Matrix& v, RowAnswer* answer) {
    const auto dim_qk = static_cast<std::size_t>(problem_.dim_qk);
    const float* query = q.values.data() + static_cast<std::size_t>(row) * dim_qk;
    std::copy(query, query + dim_qk, query_.begin());
    keys_.clear();
    scores_.clear();
    // A key counts once for each branch of a sum that sees it.
    for (VisibleKeys& branch : branches_) {
      const std::vector<std::uint64_t>& visible = branch.row(batch, head, row, &bits_);
      for (std::size_t word = 0; word < visible.size(); ++word) {
        for (std::uint64_t bits = visible[word]; bits != 0; bits &= bits - 1) {
          const std::size_t key = word * 64 + static_cast<std::size_t>(std::countr_zero(bits));
          const double product = scale_ * q.scales[static_cast<std::size_t>(row)] * k.scales[key] *
                                 dot(query_.data(), k.values.data() + key * dim_qk, dim_qk);
          const double score = final_score(batch, head, row, static_cast<std::int64_t>(key),
                                           product, &answer->tainted);
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
    answer->tainted =
        answer->tainted || (!keys_.empty() && q.tainted[static_cast<std::size_t>(row)]);
  }

  // A scaled product with soft-cap, terms of the positions and the score expression applied.
  double final_score(std::int64_t batch, std::int64_t head, std::int64_t row, std::int64_t key,
                     double score, bool* tainted) const {
    const std::int64_t q = problem_.q_position() + row, k = problem_.k_position() + key;
    if (const double cap = problem_.score.softcap; cap > 0) score = cap * std::tanh(score / cap);
    score += position_terms(problem_.score, head, k - q);
    if (!problem_.score.score_mod) return score;
    score = evaluate(*problem_.score.score_mod, {score, batch, head, q, k});
    *tainted = *tainted || (score != kMinusInfinity && !std::isfinite(score));
    return score;
  }

  // Adds the carried state, rescaled to the row max.
  void add_carried(const Carried& carried, RowAnswer* answer) const {
    const auto dim_v = static_cast<std::size_t>(problem_.dim_v);
    const double weight = std::exp2(carried.m - answer->m);
    answer->l = weight * carried.l;
    add_scaled(answer->o, weight, carried.acc, dim_v);
    answer->tainted = answer->tainted || !std::isfinite(answer->l) || !std::isfinite(carried.m) ||
                      !std::all_of(carried.acc, carried.acc + dim_v,
                                   [](float value) { return std::isfinite(value); });
  }

  // Adds the sink logit, the score of a key without a value.
  void add_sink(std::int64_t head, RowAnswer* answer) const {
    const double sink = of_head(problem_.score.sink_logit, head) * kLog2E;
    const double row_max = std::max(answer->m, sink);
    const double rescale = answer->l != 0 ? std::exp2(answer->m - row_max) : 0;
    for (std::size_t d = 0; d < static_cast<std::size_t>(problem_.dim_v); ++d) {
      answer->o[d] *= rescale;
    }
    answer->l = answer->l * rescale + std::exp2(sink - row_max);
    answer->m = row_max;
  }

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
  const std::int64_t blocks = block == 0 ? 1 : base::ceil_div(rows, block);
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

// Only what the problem reads has to be given: without query rows nothing is, and without keys K
// and V are not. Scales may be null and stand for 1.
void check_inputs(const Problem& problem, const HostInputs& inputs) {
  const std::int64_t query_rows = problem.batch * problem.heads * problem.seq_q;
  const auto need = [](const char* name, const void* data, std::int64_t elements) {
    if (data != nullptr || elements == 0) return;
    base::fail(ErrorCode::kInvalidArgument, "{} of the oracle is null, but has {} rows to be read",
               name, elements);
  };
  const std::int64_t key_rows = query_rows == 0 ? 0 : problem.batch * problem.seq_k;
  need("Q", inputs.q, query_rows);
  need("K", inputs.k, key_rows);
  need("V", inputs.v, key_rows);
  if (query_rows > 0) {
    check_rows_given(problem, {.q = inputs.q_strides,
                               .k = inputs.k_strides,
                               .v = inputs.v_strides,
                               .o = {},
                               .broadcast_rows = inputs.broadcast_rows});
  }
  if (!problem.carry_in || query_rows == 0) return;
  const HostState* state = inputs.state_in;
  if (state == nullptr) {
    base::fail(ErrorCode::kInvalidArgument,
               "the problem carries a state in, and the oracle was given none");
  }
  const auto size = [](const std::vector<float>& values) {
    return static_cast<std::int64_t>(values.size());
  };
  if (state->rows != query_rows || state->dim_v != problem.dim_v ||
      size(state->acc) != query_rows * problem.dim_v || size(state->m) != query_rows ||
      size(state->l) != query_rows) {
    base::fail(ErrorCode::kInvalidArgument,
               "the oracle's state has {} rows of {} values (acc {}, m {}, l {} in all); the "
               "problem has {} rows of {}",
               state->rows, state->dim_v, state->acc.size(), state->m.size(), state->l.size(),
               query_rows, problem.dim_v);
  }
}

namespace {

// An answer with the rows that will be computed, and room for their results; first_of_head[bh] is
// the index of the first row of a (batch, head).
Reference pick_all_rows(const Problem& problem, const ReferenceOptions& options,
                        std::vector<std::size_t>* first_of_head) {
  Reference expected;
  expected.batch = problem.batch;
  expected.heads = problem.heads;
  expected.seq_q = problem.seq_q;
  expected.dim_v = problem.dim_v;
  if (problem.seq_q == 0) return expected;  // however many heads have no row
  const double pairs = static_cast<double>(problem.batch * problem.heads) *
                       static_cast<double>(problem.seq_q) * static_cast<double>(problem.seq_k);
  const bool all = pairs <= static_cast<double>(options.max_pairs);
  first_of_head->push_back(0);
  for (std::int64_t bh = 0; bh < problem.batch * problem.heads; ++bh) {
    for (const std::int64_t row : pick_rows(problem, bh, all, options)) {
      expected.rows.push_back(bh * problem.seq_q + row);
    }
    first_of_head->push_back(expected.rows.size());
  }
  expected.o.assign(expected.rows.size() * static_cast<std::size_t>(problem.dim_v), 0.0);
  expected.m.assign(expected.rows.size(), kMinusInfinity);
  expected.l.assign(expected.rows.size(), 0.0);
  expected.tainted.assign(expected.rows.size(), 0);
  return expected;
}

}  // namespace

Reference reference(const Problem& problem, const HostInputs& inputs, base::ThreadPool& pool,
                    const ReferenceOptions& options) {
  std::vector<std::size_t> first_of_head;
  Reference expected = pick_all_rows(problem, options, &first_of_head);
  if (expected.rows.empty()) return expected;
  std::vector<VisibleKeys> branches;
  for (const Pattern& branch : problem.pattern.branches()) branches.emplace_back(problem, branch);
  std::vector<RowSolver> solvers(static_cast<std::size_t>(pool.threads()),
                                 RowSolver(problem, branches));
  const std::int64_t group = problem.heads / problem.kv_heads;
  Matrix q, k, v;
  std::mutex progress_mutex;
  std::atomic<std::size_t> done = 0;
  // Heads are computed one after another, and only the rows of one head in parallel: q, k and v are
  // shared by the threads, K and V by the heads of a group, and the kept bits of a row may be used
  // by one thread at a time.
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
    const std::int64_t tasks = base::ceil_div(static_cast<std::int64_t>(count), kRowsOfTask);
    pool.parallel_for(tasks, [&](std::int64_t task, int worker) {
      const std::size_t begin = first + static_cast<std::size_t>(task * kRowsOfTask);
      const std::size_t end = std::min(begin + kRowsOfTask, first + count);
      for (std::size_t at = begin; at < end; ++at) {
        RowAnswer answer;
        answer.o = expected.o.data() + at * static_cast<std::size_t>(problem.dim_v);
        solvers[static_cast<std::size_t>(worker)].solve(
            batch, head, expected.rows[at] - bh * problem.seq_q, q, k, v,
            carried_of(problem.carry_in ? inputs.state_in : nullptr, expected.rows[at]), &answer);
        expected.m[at] = answer.m;
        expected.l[at] = answer.l;
        expected.tainted[at] = answer.tainted;
      }
      const std::size_t now = done += end - begin;
      if (options.progress) {
        const std::lock_guard lock(progress_mutex);
        options.progress(static_cast<double>(now) / static_cast<double>(expected.rows.size()));
      }
    });
  }
  return expected;
}

}  // namespace annulus::attention

namespace annulus::inline v0 {

Reference reference(const Problem& problem, const HostInputs& inputs,
                    const ReferenceOptions& options) {
  validate(problem);
  attention::check_inputs(problem, inputs);
  constexpr int kMaxThreads = 1024;
  if (options.max_pairs < 0 || options.tile_rows < 0 || options.sampled_rows < 0 ||
      options.threads < 0 || options.threads > kMaxThreads) {
    base::fail(ErrorCode::kInvalidArgument,
               "the oracle's options are max_pairs {}, tile_rows {}, sampled_rows {}, threads {}; "
               "none may be negative, and threads at most {}",
               options.max_pairs, options.tile_rows, options.sampled_rows, options.threads,
               kMaxThreads);
  }
  base::ThreadPool pool(options.threads);
  return attention::reference(problem, inputs, pool, options);
}

}  // namespace annulus::inline v0
