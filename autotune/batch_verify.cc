#include "autotune/batch_verify.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "attention/oracle/reference.h"
#include "attention/score/score_node.h"
#include "autotune/parts.h"
#include "base/fail.h"
#include "base/math.h"
#include "base/thread_pool.h"
#include "batch/batch_runner.h"
#include "device/launches.h"
#include "device/simulator.h"
#include "device/stream.h"
#include "pattern/evaluate.h"

namespace annulus::autotune {
namespace {

using attention::KernelConfig;
using batch::RequestClass;
using batch::StepRequest;

constexpr std::int64_t kPartKeys = 128;  // the shortest possible parts
constexpr std::int64_t kLongest = 300;   // keys of three parts, the last incomplete
constexpr std::int64_t kMiddle = 77;
// Limits of the work of the oracle and the simulator for one request: pairs of a query and a key
// over all heads, and keys.
constexpr std::int64_t kMaxPairs = 1'500'000;
constexpr std::int64_t kMaxKeys = std::int64_t{1} << 15;

// Whether the pattern hides at least one key from the last query of a request with `keys` keys.
bool hides_keys(const BatchProblem& problem, std::int64_t keys) {
  pattern::Evaluator evaluator(problem.pattern, {.seq_k = keys});
  return pattern::size(evaluator.row(0, keys - 1, {0, keys})) < keys;
}

// The number of keys of a request with `queries` queries at which the pattern begins to hide keys.
// No value if that takes too many keys, or if `fewer` keys are enough.
std::optional<std::int64_t> keys_until_hidden(const BatchProblem& problem, std::int64_t fewer,
                                              std::int64_t queries) {
  const std::int64_t most =
      std::min({problem.most.keys_of_one, kMaxKeys, kMaxPairs / (queries * problem.heads)});
  if (hides_keys(problem, fewer)) return std::nullopt;
  for (std::int64_t keys = 2 * fewer + 13; keys <= most; keys = 2 * keys + 13) {
    if (hides_keys(problem, keys)) return keys;
  }
  return std::nullopt;
}

// The problem with fewer heads, small pages and blocks, and few ranks. Properties that are compiled
// into a kernel do not change.
BatchProblem with_small_parts(const BatchProblem& given) {
  constexpr std::int64_t kMaxPage = 256, kMaxBlock = 128, kMaxRanks = 4, kMaxRankBlock = 16;
  BatchProblem problem = batch::with_bounds(given);
  if (problem.pattern.distinct_heads(problem.heads) == 1) {
    const std::int64_t group = problem.heads / problem.kv_heads;
    problem.kv_heads = std::min<std::int64_t>(problem.kv_heads, 2);
    problem.heads = problem.kv_heads * group;
    keep_heads(&problem.score, problem.heads);
  }
  // Kernels are specialised for pages that are multiples of 64 or of 16.
  if (problem.page_rows > kMaxPage) problem.page_rows = kMaxPage - 64 + problem.page_rows % 64;
  if (problem.block_keys > kMaxBlock) {
    problem.max_blocks = base::ceil_div(problem.max_blocks * problem.block_keys, kMaxBlock);
    problem.block_keys = kMaxBlock;
  }
  KeyInterleave& ranks = problem.interleave;
  ranks.block = std::min(ranks.block, kMaxRankBlock);
  ranks.ranks = std::min(ranks.ranks, kMaxRanks);
  ranks.rank %= ranks.ranks;
  return problem;
}

// The score for a problem that is one request and so has the batch number 0. The request's number
// replaces the batch number.
attention::ScoreNodePointer with_batch(const attention::ScoreNodePointer& node,
                                       std::int64_t number) {
  using attention::ScoreOperation;
  if (node->operation == ScoreOperation::kBatch) return attention::make_score_integer(number);
  if (node->children.empty()) return node;
  std::vector<attention::ScoreNodePointer> children;
  for (const attention::ScoreNodePointer& child : node->children) {
    children.push_back(with_batch(child, number));
  }
  return node->operation == ScoreOperation::kTable
             ? attention::make_score_lookup(node->table, std::move(children))
             : attention::make_score_node(node->operation, std::move(children));
}

// The pairs that the metadata of a step let the queries of a request see, as a layout.
BlockLayout seen_layout(const HostStep& step, std::size_t request) {
  BlockLayout layout;
  layout.block_rows = layout.block_columns = 1;
  layout.seq_q = step.requests[request].queries;
  layout.seq_k = step.requests[request].keys;
  layout.heads = step.problem.kv_heads;
  const std::int64_t group = step.problem.heads / step.problem.kv_heads;
  for (std::int64_t head = 0; head < step.problem.heads; ++head) {
    layout.head_map.push_back(static_cast<std::int32_t>(head / group));
  }
  layout.indptr = {0};
  for (std::int64_t head = 0; head < layout.heads; ++head) {
    for (std::int64_t query = 0; query < layout.seq_q; ++query) {
      for (std::int64_t key = 0; key < layout.seq_k; ++key) {
        if (!step.may_see(request, head, query, key)) continue;
        layout.indices.push_back(static_cast<std::int32_t>(key));
      }
      layout.indptr.push_back(static_cast<std::int64_t>(layout.indices.size()));
    }
  }
  return layout;
}

// A request as a separate problem. Its oracle does not use the code of batches.
Problem problem_of(const HostStep& step, std::size_t request) {
  const BatchProblem& problem = step.problem;
  Problem one = batch::largest_request(problem);
  one.seq_q = step.requests[request].queries;
  one.seq_k = step.requests[request].keys;
  if (problem.block_keys > 0 || problem.row_limits || problem.interleave.ranks > 1) {
    one.pattern = one.pattern & blocks(seen_layout(step, request));
  }
  if (auto& score = one.score.score_mod) {
    std::size_t at = 0;
    score = ScoreExpression(with_batch(attention::parse_score_expression(score->to_string(), &at),
                                       static_cast<std::int64_t>(request)));
  }
  return one;
}

// [rows, H, width] of one request as [H, rows, width], or the reverse.
std::vector<float> transposed(const float* values, std::int64_t outer, std::int64_t inner,
                              std::int64_t width) {
  std::vector<float> made(static_cast<std::size_t>(outer * inner * width));
  for (std::int64_t i = 0; i < outer; ++i) {
    for (std::int64_t j = 0; j < inner; ++j) {
      std::copy_n(values + (i * inner + j) * width, width, made.begin() + (j * outer + i) * width);
    }
  }
  return made;
}

// The state of a request's rows in the oracle's layout, [H, queries].
HostState state_of(const HostState& all, std::int64_t first, std::int64_t queries,
                   std::int64_t heads) {
  HostState state = HostState::empty(queries * heads, all.dim_v);
  const std::int64_t row = first * heads;
  state.acc = transposed(all.acc.data() + row * all.dim_v, queries, heads, all.dim_v);
  state.m = transposed(all.m.data() + row, queries, heads, 1);
  state.l = transposed(all.l.data() + row, queries, heads, 1);
  return state;
}

// K or V of a request, [keys, Hkv, dim]. Keys of other ranks are not visible, and are zeros.
std::vector<std::uint8_t> keys_of(const HostStep& step, std::size_t request,
                                  const std::vector<std::uint8_t>& from, std::int64_t dim) {
  const std::int64_t bytes = step.problem.kv_heads * dim * batch::kElementBytes;
  std::vector<std::uint8_t> made(static_cast<std::size_t>(step.requests[request].keys * bytes));
  for (std::int64_t key = 0; key < step.requests[request].keys; ++key) {
    const std::int64_t row = step.row_of(request, key);
    if (row >= 0) std::copy_n(from.begin() + row * bytes, bytes, made.begin() + key * bytes);
  }
  return made;
}

Reference oracle_of(const HostStep& step, const Problem& one, std::size_t request,
                    base::ThreadPool& pool) {
  const std::int64_t first = step.q_begin[request];
  const std::vector<std::uint8_t> k = keys_of(step, request, step.k, one.dim_qk);
  const std::vector<std::uint8_t> v = keys_of(step, request, step.v, one.dim_v);
  HostState state;
  HostInputs inputs;
  inputs.q = step.q.data() + first * one.heads * one.dim_qk * batch::kElementBytes;
  inputs.k = k.data();
  inputs.v = v.data();
  inputs.q_strides = q_strides(one);
  inputs.k_strides = k_strides(one);
  inputs.v_strides = v_strides(one);
  if (one.carry_in) {
    state = state_of(step.state_in, first, one.seq_q, one.heads);
    inputs.state_in = &state;
  }
  return attention::reference(one, inputs, pool);
}

}  // namespace

batch::BatchPlanData plan_with(const KernelConfig& config, const BatchProblem& problem,
                               const BatchOptions& options, const attention::DeviceLimits& limits) {
  BatchOptions named = options;
  named.config = to_string(config);
  return batch::make_plan(problem, named, limits);
}

const batch::ClassPlan& class_of(const batch::BatchPlanData& plan, const KernelConfig& config) {
  return *std::ranges::find_if(plan.classes, [&](const batch::ClassPlan& of) {
    return batch::kernel_of(of.config).requests == batch::kernel_of(config).requests;
  });
}

SmallStep small_step(const tuned::BatchTarget& target) {
  SmallStep step{.problem = with_small_parts(target.problem), .requests = {}};
  BatchProblem& problem = step.problem;
  const std::int64_t group = problem.heads / problem.kv_heads;
  const std::int64_t few = batch::most_few_queries(problem);
  // Several row tiles of any configuration, of which the last is incomplete.
  const std::int64_t many =
      std::min(few + base::ceil_div(kLongest, group), problem.most.rows_of_one);
  const bool is_few = target.requests == RequestClass::kFewQueries;
  const std::int64_t least = is_few ? 1 : few + 1, most = is_few ? few : many;
  // Each rank has the same number of keys as a batch without ranks.
  const std::int64_t ranks = problem.interleave.ranks;
  const std::int64_t longest = kLongest * ranks;
  const std::int64_t last = keys_until_hidden(problem, longest, least).value_or(kMiddle * ranks);
  step.requests = {{least, 1}, {most, longest}, {least, last}};
  BatchBounds& bounds = problem.most;
  bounds.requests = std::ssize(step.requests);
  // A kernel is specialised by what a tile of its rows sees, and the classes by the longest
  // requests.
  bounds.rows_of_one = std::min(bounds.rows_of_one, few + kPartRows);
  bounds.rows = std::max(2 * least + most, bounds.rows_of_one);
  bounds.keys_of_one = std::max(longest, last);
  bounds.keys = 1 + longest + last;
  if (problem.block_keys > 0) {
    // One block fewer than exist, if a list may be that short.
    const std::int64_t there = base::ceil_div(bounds.keys_of_one, problem.block_keys);
    problem.max_blocks = std::clamp<std::int64_t>(there - 1, 1, problem.max_blocks);
  }
  return step;
}

struct BatchVerifier::Data {
  Data(const device::ContextPointer& context, const SmallStep& small, std::uint64_t seed,
       base::ThreadPool& pool)
      : host(draw_step(small.problem, small.requests,
                       {.seed = seed, .max_elements = INT64_MAX, .rows_end_early = true})),
        on_device(context, host) {
    for (std::size_t r = 0; r < host.requests.size(); ++r) {
      problems.push_back(problem_of(host, r));
      oracles.push_back(oracle_of(host, problems.back(), r, pool));
    }
  }

  // Compares the output of the device with the oracle.
  std::optional<std::string> why_wrong() const {
    const HostRows rows = on_device.rows.results();
    for (std::size_t r = 0; r < problems.size(); ++r) {
      const Problem& one = problems[r];
      const std::int64_t first = host.q_begin[r] * one.heads;
      HostResult result;
      HostState state;
      std::vector<float> lse;
      if (one.carry_out) {
        state = state_of(rows.state, host.q_begin[r], one.seq_q, one.heads);
        result.state = &state;
      } else {
        result.o = rows.o.data() + first * one.dim_v;
        result.o_strides = o_strides(one);
      }
      if (one.want_lse) {
        lse = transposed(rows.lse.data() + first, one.seq_q, one.heads, 1);
        result.lse = lse.data();
      }
      auto reason = autotune::why_wrong(annulus::compare(one, oracles[r], result));
      if (reason) {
        return fmt::format("{}, in a request of {} queries and {} keys", *reason, one.seq_q,
                           one.seq_k);
      }
    }
    return std::nullopt;
  }

  HostStep host;
  DeviceStep on_device;
  std::vector<Problem> problems;
  std::vector<Reference> oracles;
};

BatchVerifier::BatchVerifier(device::ContextPointer context, jit::KernelCache& kernels,
                             attention::DeviceLimits limits, const tuned::BatchTarget& target,
                             std::uint64_t seed, int threads)
    : context_(std::move(context)),
      kernels_(kernels),
      limits_(limits),
      options_(target.options),
      step_(small_step(target)) {
  options_.part_keys = kPartKeys;
  options_.max_workspace_bytes = 0;
  base::ThreadPool pool(threads);
  data_ = std::make_unique<Data>(context_, step_, seed, pool);
}

BatchVerifier::~BatchVerifier() = default;

batch::BatchPlanData BatchVerifier::plan_of(const KernelConfig& config) const {
  return plan_with(config, step_.problem, options_, limits_);
}

Verdict BatchVerifier::check(const KernelConfig& config) const {
  return judged(*context_, [&] { return run(config); });
}

Verdict BatchVerifier::run(const KernelConfig& config) const {
  Verdict verdict;
  const batch::BatchRunner runner(context_, kernels_, plan_of(config));
  const attention::Dims dims = {step_.problem.dim_qk, step_.problem.dim_v};
  const bool may_spill = attention::why_spills(config, dims, limits_.arch).has_value();
  const jit::KernelLookup kernel = kernels_.get(class_of(runner.plan(), config).spec);
  verdict.reason = why_costly(kernel.kernel->usage, may_spill);
  if (verdict.reason) return verdict;
  const DeviceStep& step = data_->on_device;
  step.rows.forget_results();
  const device::Buffer memory(context_, static_cast<std::size_t>(runner.plan().workspace_bytes));
  void* const workspace = pointer<void>(memory);
  device::StreamSink to(nullptr);
  runner.prepare(to, step.metadata, workspace);
  device::synchronize(*context_, nullptr);
  device::simulator_counters(*context_, /*clear=*/true);
  runner.run(to, step.operands, workspace);
  device::synchronize(*context_, nullptr);
  if (const auto counters = device::simulator_counters(*context_, true)) {
    verdict.counted = attention::counted_work(*counters);
  }
  verdict.reason = data_->why_wrong();
  if (const BatchRule rule = runner.status(workspace).rule;
      !verdict.reason && rule != BatchRule::kNone) {
    base::fail(ErrorCode::kInternal, "the step that '{}' is tried with has {}", to_string(config),
               to_string(rule));
  }
  return verdict;
}

}  // namespace annulus::autotune
