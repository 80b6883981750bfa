#ifndef ANNULUS_BATCH_BATCH_PLAN_H_
#define ANNULUS_BATCH_BATCH_PLAN_H_

// Everything about a batch that is decided without touching a device: the kernels, where parts of a
// request's keys end, and the exact layout of the workspace. batch_runner.h carries it out.

#include <cstdint>
#include <string>
#include <vector>

#include "annulus/batch.h"
#include "attention/score/score.h"
#include "attention/score/score_code.h"
#include "batch/decode_config.h"
#include "pattern/mask_code.h"

namespace annulus::batch {

// How heads and queries are packed into the rows of a tile.
struct Packing {
  std::int64_t tile_heads = 1;    // heads of a tile of rows
  std::int64_t head_tiles = 1;    // tiles of a group's heads
  std::int64_t tile_queries = 1;  // queries of a tile
  std::int64_t columns = 1;       // Hkv * head_tiles
  std::int64_t slot_rows = 1;     // the most rows that a tile has
};
Packing pack(const BatchProblem& problem);

// The parts of a workspace: how many there may be of each, and where they begin. Every part is
// 256-byte aligned.
struct WorkspaceLayout {
  std::int64_t rows = 0;   // tiles of rows
  std::int64_t works = 0;  // parts of keys of tiles of rows
  std::int64_t slots = 0;  // parts whose states are joined
  std::int64_t requests_at = 0, row_begin_at = 0, rows_at = 0, works_at = 0, joined_at = 0;
  std::int64_t acc_at = 0, m_at = 0, l_at = 0;
  std::int64_t bytes = 0;
};

// For parts of `part_keys` keys. No step within the bounds has more: a tile of rows of a request
// with k keys has at most max(1, ceil(k / part_keys)) parts. Where the numbers leave 32 bits
// nothing is placed, and `bytes` is the largest number.
WorkspaceLayout lay_out(const BatchProblem& problem, const Packing& packing,
                        std::int64_t part_keys);

struct BatchPlanData {
  BatchProblem problem;  // with every bound set
  DecodeConfig config;
  BatchFeatures features;
  Packing packing;
  std::int64_t part_keys = 0;
  WorkspaceLayout workspace;
  std::vector<kernels::RowForm> forms;
  pattern::MaskCode mask;
  attention::ScoreNumbers score;
  attention::ScoreTables score_tables;
  attention::ScoreCode score_code;
  float lse_factor = 1;
  std::int64_t ctas = 0;  // of decode_forward
  bool joins = false;     // whether any step has a row with several parts
  jit::KernelSpec prepare, decode, combine;
  std::vector<std::string> decisions;
};

// Requires: validate(problem) passes. Throws as plan_batch, but for kCompile and kDevice.
BatchPlanData make_plan(const BatchProblem& problem, const BatchOptions& options,
                        const attention::DeviceLimits& limits);

// A request of the most rows and keys as a problem of its own, for the rules and the code that both
// share.
Problem largest_request(const BatchProblem& problem);

}  // namespace annulus::batch

#endif  // ANNULUS_BATCH_BATCH_PLAN_H_
