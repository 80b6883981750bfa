#ifndef ANNULUS_BATCH_BATCH_PLAN_H_
#define ANNULUS_BATCH_BATCH_PLAN_H_

// All decisions about a batch that need no device: the kernels, the ends of the parts of a
// request's keys, and the exact layout of the workspace. batch_runner.h runs the plan.

#include <cstdint>
#include <string>
#include <vector>

#include "annulus/batch.h"
#include "attention/kernels/device_limits.h"
#include "attention/score/score.h"
#include "attention/score/score_code.h"
#include "batch/batch_config.h"
#include "batch/row_forms.h"
#include "pattern/mask_code.h"

namespace annulus::batch {

// The problem, with default bounds filled in.
BatchProblem with_bounds(BatchProblem problem);

// The parameters of the pages of a problem that kernels read.
kernels::Pages pages_of(const BatchProblem& problem);

// The most queries of a request of RequestClass::kFewQueries. Requires: every bound is set.
std::int64_t most_few_queries(const BatchProblem& problem);

// How heads and queries are packed into the rows of a tile.
struct Packing {
  std::int64_t tile_heads = 1;    // heads in a tile of rows
  std::int64_t head_tiles = 1;    // tiles for a group's heads
  std::int64_t tile_queries = 1;  // queries in a tile
  std::int64_t columns = 1;       // Hkv * head_tiles
  // The columns that share a row of the lists because they see the same keys: all, or one.
  std::int64_t row_columns = 1;
};
// The packing in which all columns share a row.
Packing pack(const BatchProblem& problem, std::int64_t tile_rows);

// The lists of a class of requests in a workspace: the most entries of each list, and the offset at
// which it begins. Every list is 256-byte aligned.
struct ListLayout {
  std::int64_t rows = 0;       // tiles of rows
  std::int64_t works = 0;      // parts of keys of tiles of rows
  std::int64_t slots = 0;      // parts with states to join
  std::int64_t slot_rows = 0;  // the most rows of a tile
  std::int64_t header_at = 0, requests_at = 0, row_begin_at = 0, rows_at = 0, works_at = 0;
  std::int64_t joined_at = 0, acc_at = 0, m_at = 0, l_at = 0;
  std::int64_t end = 0;  // the offset after all lists
};

// The layout of the arrays that list_blocks writes for all classes, at the start of a workspace.
struct BlocksLayout {
  std::int64_t lists_at = 0, blocks_at = 0;
  std::int64_t end = 0;  // 0 if there are no lists of blocks
};
BlocksLayout lay_out_blocks(const BatchProblem& problem);

// The layout of lists that begin at byte `begin`, for requests with up to `max_queries` queries,
// for parts of `part_keys` keys. No step within the bounds has more: a tile of rows of a request
// with k keys has at most max(1, ceil(k / part_keys)) parts. If a number does not fit 32 bits,
// nothing is placed, and `end` is the largest int64.
ListLayout lay_out(const BatchProblem& problem, const Packing& packing, std::int64_t max_queries,
                   std::int64_t part_keys, std::int64_t begin);

// How the requests of one class are computed.
struct ClassPlan {
  KernelConfig config;
  bool named = false;  // the caller named the configuration
  // Why kernels that come before `config` are withheld, or, if the caller named `config`, why it is
  // withheld itself. Empty if none is withheld.
  std::string withheld;
  Packing packing;
  // The keys that the heads of each row of a tile see: an index into BatchPlanData::forms for each
  // row.
  std::vector<int> forms;
  std::int64_t least_queries = 0;
  std::int64_t max_queries = 0;
  std::int64_t part_keys = 0;
  ListLayout lists;
  std::int64_t ctas = 0;
  bool joins = false;  // whether any step can have a row with several parts
  jit::KernelSpec spec, combine;
};

struct BatchPlanData {
  BatchProblem problem;  // all bounds are set
  BatchFeatures features;
  std::vector<ClassPlan> classes;  // at least one; the class of few queries comes first
  std::int64_t workspace_bytes = 0;
  std::vector<HeadForms> forms;
  BlocksLayout blocks;
  pattern::MaskCode mask;
  attention::ScoreNumbers score;
  attention::ScoreTables score_tables;
  attention::ScoreCode score_code;
  float lse_factor = 1;
  jit::KernelSpec prepare;
  jit::KernelSpec list_blocks;  // if there are lists
  std::vector<std::string> decisions;
};

// Throws Error{kInvalidArgument} for options out of range.
void check_options(const BatchOptions& options);

// Requires: validate(problem) passes. Throws the errors of plan_batch, except kCompile and kDevice.
BatchPlanData make_plan(const BatchProblem& problem, const BatchOptions& options,
                        const attention::DeviceLimits& limits);

// The kernels that a runner of such a plan loads.
std::vector<jit::KernelSpec> kernels_of(const BatchPlanData& plan);

// A request with the most rows and keys as a Problem, for rules that batches share with problems.
Problem largest_request(const BatchProblem& problem);

}  // namespace annulus::batch

#endif  // ANNULUS_BATCH_BATCH_PLAN_H_
