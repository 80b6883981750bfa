#ifndef ANNULUS_ATTENTION_PLAN_PLAN_H_
#define ANNULUS_ATTENTION_PLAN_PLAN_H_

// What will be done about a problem, decided without touching a device: which kernel, which tiles,
// which launches. A LaunchPlan is data that can be printed, tested and compared; forward.h carries
// it out. The same arguments give the same plan on every machine.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "annulus/attention.h"
#include "attention/kernels/device_limits.h"
#include "attention/kernels/kernel_config.h"
#include "attention/kernels/kernel_source.h"
#include "attention/kernels/launch.h"
#include "attention/plan/choose_config.h"
#include "attention/score/score.h"
#include "attention/score/score_code.h"
#include "attention/tiles/kv_split.h"
#include "attention/tiles/tile_cache.h"
#include "attention/tiles/tile_list.h"
#include "jit/spec.h"
#include "pattern/mask_code.h"

namespace annulus::attention {

// Everything is decided by make_plan, which hands it out whole.
struct LaunchPlan {
  // What was asked.
  Problem problem;
  pattern::Placement placement;

  // What was decided.
  KernelConfig config;
  WorkGroup group;
  pattern::MaskCode mask;
  KernelFeatures features;  // what the kernel was specialised by
  jit::KernelSpec spec;
  std::shared_ptr<const TileList> tiles;  // perhaps that of other plans as well; never null
  KvSplit split;                          // empty: a CTA takes whole rows
  jit::KernelSpec merge_spec;        // where rows are split: of the launch that follows each launch
  LaunchShape shape;                 // grid_z is that of the largest launch
  std::vector<BatchRange> launches;  // empty where B or Sq is 0

  // What the kernel reads besides the tiles.
  // Where it reads positions row by row: of each row, padded to whole tiles.
  std::vector<std::int32_t> q_positions;
  std::vector<std::int32_t> k_positions;
  ScoreNumbers score;
  ScoreTables score_tables;
  ScoreCode score_code;
  float lse_factor = 1;
  std::int64_t workspace_bytes = 0;  // that each concurrent run needs of its own
  std::int64_t device_bytes = 0;     // that the plan holds

  // What people are told.
  std::string reason;                  // why this configuration
  std::string split_reason;            // why rows are split or not; empty where nobody asked
  std::vector<std::string> decisions;  // one line each
  std::vector<Rejected> rejected;
};

// What whoever plans has to say about how.
struct PlanForm {
  ListForm list = ListForm::kShortest;
  // Into how many parts the longest tile rows are split, and others into parts as long. 1: none; 0:
  // as the pipe model finds. A plan with parts needs workspace.
  int kv_splits = 1;
};

// Tile rows, or parts of them, of each head.
std::int64_t launched_rows(const LaunchPlan& plan);

// Takes the choice's second configuration where the tiles forbid what the first one does together.
// Requires: validate(problem) passes; its pattern is no sum (branched_forward.h). Throws as
// make_tile_list, pattern::emit and score_code do, and Error{kUnsupported} where the tiles forbid
// the only configuration of the choice. The shortest list is one that all lengths of its
// grid share (tile_grid.h); with a cache it is one that was made before, where there is such a one.
// A list of another form is of these lengths alone.
LaunchPlan make_plan(const Problem& problem, const Choice& choice, const DeviceLimits& limits,
                     const PlanForm& form = {}, TileCache* cache = nullptr);

// The same for tensors that are shards: Sq and Sk are the rows of the placement, and the problem's
// own q0 and k0 are replaced by it. Requires: the placement has as many rows, all positions within
// kMaxPosition.
LaunchPlan make_plan(Problem problem, const pattern::Placement& placement, const Choice& choice,
                     const DeviceLimits& limits, const PlanForm& form = {},
                     TileCache* cache = nullptr);

}  // namespace annulus::attention

#endif  // ANNULUS_ATTENTION_PLAN_PLAN_H_
