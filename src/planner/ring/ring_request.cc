#include "planner/ring/ring_request.h"

#include <fmt/format.h>

#include "attention/problem/operands.h"
#include "base/fail.h"
#include "ring/plan.h"

namespace annulus::planner {

ring::Terms terms_of(const RankRequest& rank) {
  // The driver's name is part of the term, because a real driver and the simulator cannot copy to
  // each other's memory.
  const std::string device = fmt::format("{}, {}", jit::to_string(rank.planner.limits.arch),
                                         rank.planner.context->driver().name());
  return ring::terms_of(*rank.problem, *rank.shards, rank.options->route, device,
                        rank.options->config);
}

void check_problem(const RankRequest& rank) {
  const Problem& problem = *rank.problem;
  validate(problem);
  validate(*rank.shards, problem);
}

void check_options(const RankRequest& rank, int number) {
  const RingOptions& options = *rank.options;
  if (options.route != Route::kAuto && options.route != Route::kDirect &&
      options.route != Route::kRing) {
    base::fail(ErrorCode::kInvalidArgument, "route {} is neither auto, direct nor ring",
               static_cast<int>(options.route));
  }
  if (options.kv_splits > 1) {
    base::fail(ErrorCode::kUnsupported,
               "kv_splits is {}, but a ring's launches are not split: they carry their state from "
               "step to step; leave it 0",
               options.kv_splits);
  }
  if (options.block_rows != 0 || options.block_columns != 0) {
    base::fail(ErrorCode::kUnsupported,
               "block_rows and block_columns are {} and {}, but a ring counts no block density; "
               "leave them 0, or read it from a plan of the whole problem",
               options.block_rows, options.block_columns);
  }
  if (!options.strides) return;
  Problem local = *rank.problem;
  local.seq_q = ring::rows_of_rank(rank.shards->q, number);
  local.seq_k = ring::rows_of_rank(rank.shards->k, number);
  attention::check_rows_given(local, *options.strides);
}

}  // namespace annulus::planner
