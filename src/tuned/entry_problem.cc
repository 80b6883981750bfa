#include "tuned/entry_problem.h"

#include <algorithm>
#include <cmath>
#include <tuple>
#include <utility>
#include <vector>

#include "annulus/types.h"
#include "base/fail.h"
#include "batch/batch_plan.h"
#include "selection/selection_plan.h"
#include "tuned/batch_key.h"

namespace annulus::tuned {
namespace {

constexpr double kMassUnits = 1 << 20;

bool can_be_stated(const Problem& problem) {
  const ScaleBlocks& blocks = problem.scale_blocks;
  const std::int64_t keys = problem.k_position() + problem.seq_k;
  return blocks.q == blocks.k && blocks.k == blocks.v && problem.total_k.value_or(keys) == keys;
}

// The members that problems and batches have in common.
template <typename Any>
Any stated_heads(const Entry& entry) {
  Any problem;
  problem.heads = entry.origin.heads;
  problem.kv_heads = entry.origin.kv_heads;
  problem.dim_qk = entry.shape.dim_qk;
  problem.dim_v = entry.shape.dim_v;
  problem.dtype = entry.shape.dtype;
  problem.carry_in = entry.shape.carry_in;
  problem.carry_out = entry.shape.carry_out;
  problem.pattern = Pattern::parse(entry.origin.pattern, {.allow_files = false});
  problem.score = Score::parse(entry.origin.score);
  return problem;
}

Problem stated_problem(const Entry& entry) {
  const Entry::Origin& origin = entry.origin;
  auto problem = stated_heads<Problem>(entry);
  problem.batch = origin.batch;
  problem.seq_q = origin.seq_q;
  problem.seq_k = origin.seq_k;
  problem.q0 = origin.q0;
  problem.k0 = origin.k0;
  problem.layer = origin.layer;
  problem.scale_blocks = {origin.scale_block, origin.scale_block, origin.scale_block};
  validate(problem);
  return problem;
}

// The members of a selection that are stored without conversion.
constexpr std::pair<std::int64_t StatedSelection::*, std::int64_t Selection::*>
    kSelectionMembers[] = {{&StatedSelection::block_rows, &Selection::block_rows},
                           {&StatedSelection::block_columns, &Selection::block_columns},
                           {&StatedSelection::max_blocks, &Selection::max_blocks},
                           {&StatedSelection::stride, &Selection::stride},
                           {&StatedSelection::coarse_factor, &Selection::coarse_factor},
                           {&StatedSelection::coarse_blocks, &Selection::coarse_blocks},
                           {&StatedSelection::sink_blocks, &Selection::sink_blocks},
                           {&StatedSelection::diagonal_blocks, &Selection::diagonal_blocks}};

}  // namespace

void state_problem(const Problem& problem, Entry::Origin* origin) {
  origin->batch = problem.batch;
  origin->heads = problem.heads;
  origin->kv_heads = problem.kv_heads;
  origin->seq_q = problem.seq_q;
  origin->seq_k = problem.seq_k;
  origin->q0 = problem.q_position();
  origin->k0 = problem.k_position();
  origin->layer = problem.layer;
  origin->scale_block = problem.scale_blocks.q;
  if (!can_be_stated(problem)) return;
  const std::string pattern = problem.pattern.to_string(), score = problem.score.to_string();
  const bool named = pattern.find('"') != std::string::npos;
  if (named || pattern.size() > kMaxEntryText || score.size() > kMaxEntryText) return;
  origin->pattern = pattern;
  origin->score = score;
}

void state_selected(const Problem& problem, const Selection& selection, Entry::Origin* origin) {
  state_problem(problem, origin);
  StatedSelection& stated = origin->selection.emplace();
  for (const auto& [of_entry, own] : kSelectionMembers) stated.*of_entry = selection.*own;
  stated.rule = static_cast<std::int64_t>(selection.rule);
  stated.mass = std::llround(selection.mass * kMassUnits);
  stated.pool = static_cast<std::int64_t>(selection.pool);
}

void state_batch(const BatchTarget& batch, Entry::Origin* origin) {
  state_problem(as_problem(batch.problem, batch.requests), origin);
  const BatchProblem problem = batch::with_bounds(batch.problem);
  StatedBatch stated;
  stated.requests = problem.most.requests;
  stated.rows = problem.most.rows;
  stated.rows_of_one = problem.most.rows_of_one;
  stated.keys_of_one = problem.most.keys_of_one;
  stated.keys = problem.most.keys;
  stated.page_rows = problem.page_rows;
  stated.block_keys = problem.block_keys;
  stated.max_blocks = problem.max_blocks;
  stated.row_limits = problem.row_limits ? 1 : 0;
  stated.want_lse = problem.want_lse ? 1 : 0;
  stated.rank_block = problem.interleave.block;
  stated.ranks = problem.interleave.ranks;
  stated.rank = problem.interleave.rank;
  std::vector<std::int64_t>& step = stated.step;
  for (const batch::StepRequest& request : batch.step) {
    const std::size_t size = step.size();
    if (size > 0 && step[size - 2] == request.queries && step[size - 1] == request.keys) {
      ++step[size - 3];
    } else {
      step.insert(step.end(), {1, request.queries, request.keys});
    }
  }
  if (step.size() <= kMaxStepNumbers) origin->requests = std::move(stated);
}

namespace {

// Calls make(). Its errors are reported as errors of the values in the entry.
template <typename Make>
auto stated_by(const Entry& entry, const Make& make) {
  if (entry.origin.pattern.empty()) {
    base::fail(ErrorCode::kUnsupported,
               "the entry does not hold the problem that it was found with: its pattern is of a "
               "file, of memory or long");
  }
  try {
    return make();
  } catch (const Error& error) {
    if (error.code() == ErrorCode::kCancelled) throw;
    base::fail(ErrorCode::kInvalidFile, "the entry's problem is invalid: {}", error.what());
  }
}

void check_shape(bool is_of_shape) {
  if (!is_of_shape) {
    base::fail(ErrorCode::kInvalidFile, "the entry's problem is not of its shape");
  }
}

Selection selection_of(const StatedSelection& stated) {
  Selection selection;
  for (const auto& [of_entry, own] : kSelectionMembers) selection.*own = stated.*of_entry;
  selection.rule = static_cast<SelectionRule>(stated.rule);
  selection.mass = static_cast<double>(stated.mass) / kMassUnits;
  selection.pool = static_cast<Pool>(stated.pool);
  return selection;
}

BatchProblem batch_problem_of(const Entry& entry) {
  const StatedBatch& stated = *entry.origin.requests;
  auto problem = stated_heads<BatchProblem>(entry);
  problem.most = {.requests = stated.requests,
                  .rows = stated.rows,
                  .rows_of_one = stated.rows_of_one,
                  .keys_of_one = stated.keys_of_one,
                  .keys = stated.keys};
  problem.page_rows = stated.page_rows;
  problem.block_keys = stated.block_keys;
  problem.max_blocks = stated.max_blocks;
  problem.row_limits = stated.row_limits != 0;
  problem.want_lse = stated.want_lse != 0;
  problem.interleave = {.block = stated.rank_block, .ranks = stated.ranks, .rank = stated.rank};
  validate(problem);
  return problem;
}

std::vector<StepRequests> step_of(const StatedBatch& stated) {
  std::vector<StepRequests> step;
  for (std::size_t i = 0; i + 2 < stated.step.size(); i += 3) {
    step.push_back({stated.step[i], stated.step[i + 1], stated.step[i + 2]});
  }
  return step;
}

}  // namespace

Problem problem_of(const Entry& entry) {
  const Problem problem = stated_by(entry, [&] { return stated_problem(entry); });
  check_shape(problem.batch > 0 && problem.seq_q > 0 && shape_key(problem) == entry.shape);
  return problem;
}

std::pair<Problem, Selection> selected_of(const Entry& entry) {
  if (!entry.origin.selection) {
    base::fail(ErrorCode::kUnsupported,
               "the entry does not hold the selection that it was found with; entries of earlier "
               "builds never do");
  }
  std::pair<Problem, Selection> stated = stated_by(entry, [&] {
    std::pair made(stated_problem(entry), selection_of(*entry.origin.selection));
    selection::validate(made.first, made.second);
    return made;
  });
  const auto& [problem, selection] = stated;
  check_shape(problem.batch > 0 && problem.seq_q > 0 &&
              shape_key(problem, selection) == entry.shape);
  return stated;
}

BatchTarget batch_of(const Entry& entry) {
  if (!entry.origin.requests) {
    base::fail(ErrorCode::kUnsupported,
               "the entry does not hold the batch that it was found with: its step is of many "
               "kinds of requests, or an earlier build wrote it");
  }
  BatchTarget target;
  target.requests = entry.shape.requests == Requests::kFewQueries
                        ? batch::RequestClass::kFewQueries
                        : batch::RequestClass::kManyQueries;
  std::tie(target.problem, target.step) = stated_by(entry, [&] {
    BatchProblem problem = batch_problem_of(entry);
    std::vector<batch::StepRequest> step =
        requests_of(step_of(*entry.origin.requests), problem, target.requests);
    return std::pair(std::move(problem), std::move(step));
  });
  const auto within = classes_within(target.problem);
  check_shape(std::ranges::find(within, target.requests) != within.end() && !target.step.empty() &&
              shape_key(target.problem, target.requests) == entry.shape);
  return target;
}

}  // namespace annulus::tuned
