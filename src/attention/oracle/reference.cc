#include "attention/oracle/reference.h"

#include <algorithm>
#include <limits>
#include <mutex>
#include <set>

#include "attention/oracle/row_solver.h"
#include "base/fail.h"
#include "base/math.h"
#include "base/random.h"
#include "base/thread_pool.h"
#include "base/work.h"

namespace annulus::attention {
namespace {

constexpr std::int64_t kRowsOfTask = 8;

// The rows of one (batch, head) that are computed, in ascending order: all rows, or the first tile,
// the last tile and a random sample, seeded for each head.
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

Carried carried_of(const HostState* state, std::int64_t row) {
  if (state == nullptr) return {};
  const auto index = static_cast<std::size_t>(row);
  return {static_cast<double>(state->m[index]), static_cast<double>(state->l[index]),
          state->acc.data() + row * state->dim_v};
}

// A Reference with the numbers of the rows that will be computed, and memory for their results.
// first_of_head[bh] is the index of the first row of a (batch, head).
Reference pick_all_rows(const Problem& problem, const ReferenceOptions& options,
                        std::vector<std::size_t>* first_of_head) {
  Reference expected;
  expected.batch = problem.batch;
  expected.heads = problem.heads;
  expected.seq_q = problem.seq_q;
  expected.dim_v = problem.dim_v;
  if (problem.seq_q == 0) return expected;  // any number of heads has no row
  const double pairs = static_cast<double>(problem.batch * problem.heads) *
                       static_cast<double>(problem.seq_q) * static_cast<double>(problem.seq_k);
  const bool all = pairs <= static_cast<double>(options.max_pairs);
  first_of_head->push_back(0);
  for (std::int64_t bh = 0; bh < problem.batch * problem.heads; ++bh) {
    const std::vector<std::int64_t> picked = pick_rows(problem, bh, all, options);
    base::charge(static_cast<std::int64_t>(picked.size()));
    for (const std::int64_t row : picked) {
      expected.rows.push_back(bh * problem.seq_q + row);
    }
    first_of_head->push_back(expected.rows.size());
  }
  expected.o.assign(expected.rows.size() * static_cast<std::size_t>(problem.dim_v), 0.0);
  expected.m.assign(expected.rows.size(), -std::numeric_limits<double>::infinity());
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
  std::size_t done = 0;
  // Heads are computed one after another, and only the rows of one head in parallel: the threads
  // share q, k and v, the heads of a group share K and V, and only one thread at a time may use the
  // kept bits of a row.
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
      if (!options.progress) return;
      // Counted under the lock, so that the reported share never decreases.
      const std::lock_guard lock(progress_mutex);
      done += end - begin;
      options.progress(static_cast<double>(done) / static_cast<double>(expected.rows.size()));
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