#ifndef ANNULUS_ATTENTION_PLAN_PLAN_H_
#define ANNULUS_ATTENTION_PLAN_PLAN_H_

// The plan of a problem, decided without touching a device: which kernel, which tiles, which
// launches. A LaunchPlan is data that can be printed, tested and compared; attention/run/forward.h
// carries it out. The same arguments give the same plan on every machine.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "annulus/problem.h"
#include "attention/kernels/device_limits.h"
#include "attention/kernels/family.h"
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

// All decisions about a problem. make_plan makes them all; nothing changes afterwards.
struct LaunchPlan {
  // What was asked.
  Problem problem;
  pattern::Placement placement;

  // What was decided.
  KernelConfig config;
  WorkGroup group;
  pattern::MaskCode mask;
  KernelFeatures features;  // what the kernel is specialised by
  jit::KernelSpec spec;
  std::shared_ptr<const TileList> tiles;  // other plans may share it; never null
  KvSplit split;                          // empty: a CTA takes whole rows
  jit::KernelSpec combine_spec;           // if rows are split: the combine that follows each launch
  pattern::Interval keys;                 // the rows of K and V that are read
  HeadStart head_start;                   // if features.draws_work, of a plan with one launch
  LaunchShape shape;                      // grid_z is that of the largest launch
  Launches launches;                      // empty where B or Sq is 0

  // What the kernel reads besides the tiles. The positions are those of each row, padded to whole
  // tiles; empty unless Positions::kOfRows.
  std::vector<std::int32_t> q_positions;
  std::vector<std::int32_t> k_positions;
  ScoreNumbers score;
  ScoreTables score_tables;
  ScoreCode score_code;
  float lse_factor = 1;
  std::int64_t workspace_bytes = 0;  // for each concurrent run
  std::int64_t drawn_offset = 0;     // of the counter of works in it, if features.draws_work
  std::int64_t device_bytes = 0;     // of the arrays that the plan keeps on the device

  // Explanations for people.
  std::string reason;                  // why this configuration
  std::string split_reason;            // why rows are split or not; empty if nobody asked
  std::vector<std::string> decisions;  // one line each
  std::vector<Rejected> rejected;
};

// How a caller wants a problem to be planned.
struct PlanForm {
  ListForm list = ListForm::kShortest;
  // The number of parts that the longest tile row is split into; shorter rows are split into parts
  // of the same length. 1 splits nothing, 0 lets the pipe model decide. A plan with parts needs
  // workspace.
  int kv_splits = 1;
  // The most parts of the longest row that the model may choose; 0: as many as it likes.
  int max_kv_splits = 0;
  // The most batches of a launch; 0: as many as a grid takes. Launches follow one another, so that
  // their states share workspace.
  std::int64_t max_batches = 0;
  // Plans a general kernel (KernelFeatures::general); its works are counted off.
  bool general = false;
  // How persistent CTAs get their works. A counter to draw them from is in the plan's workspace, so
  // that only callers who give one may ask for it.
  Dealt dealt = Dealt::kCountedOff;
};

// The number of tile rows, or of parts of them, of each head.
std::int64_t launched_rows(const LaunchPlan& plan);

// Plans a problem. It takes the choice's second configuration if the tiles forbid what the first
// one computes together (group.h). Requires: validate(problem) passes; its pattern is no sum
// (attention/run/branched_forward.h makes a plan for each branch). Throws as make_tile_list,
// pattern::emit and score_code do, and Error{kUnsupported} if the tiles forbid the only
// configuration of the choice. With ListForm::kShortest the list is shared by all lengths of its
// grid (attention/tiles/tile_grid.h) and found in the cache if it was made before; a list of
// another form is made for these lengths only.
LaunchPlan make_plan(const Problem& problem, const Choice& choice, const DeviceLimits& limits,
                     const PlanForm& form = {}, TileCache* cache = nullptr);

// As make_plan above, for tensors that are shards: the placement has the positions of all rows and
// replaces the problem's own q0 and k0. Requires: the placement has Sq and Sk rows, with all
// positions within kMaxPosition.
LaunchPlan make_plan(Problem problem, const pattern::Placement& placement, const Choice& choice,
                     const DeviceLimits& limits, const PlanForm& form = {},
                     TileCache* cache = nullptr);

}  // namespace annulus::attention

#endif  // ANNULUS_ATTENTION_PLAN_PLAN_H_
