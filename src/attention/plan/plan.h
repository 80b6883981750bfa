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

// All decisions about a problem. make_plan makes all of them; a plan never changes.
struct LaunchPlan {
  // --- The arguments of make_plan.
  Problem problem;
  pattern::Placement placement;

  // --- The decisions.
  KernelConfig config;
  WorkGroup group;
  pattern::MaskCode mask;
  KernelFeatures features;  // the features that are compiled into the kernel
  jit::KernelSpec spec;
  std::shared_ptr<const TileList> tiles;  // other plans may share the list; never null
  KvSplit split;                          // empty: a CTA takes whole rows
  jit::KernelSpec combine_spec;           // if rows are split: the combine kernel after each launch
  pattern::Interval keys;                 // the rows of K and V that are read
  HeadStart head_start;                   // if features.draws_work, for a plan with one launch
  LaunchShape shape;                      // grid_z is the one of the largest launch
  Launches launches;                      // empty if B or Sq is 0

  // The arrays that the kernel reads in addition to the tiles. Positions are listed for each row,
  // padded to whole tiles; they are empty unless Positions::kOfRows.
  std::vector<std::int32_t> q_positions;
  std::vector<std::int32_t> k_positions;
  ScoreNumbers score;
  ScoreTables score_tables;
  ScoreCode score_code;
  float lse_factor = 1;
  std::int64_t workspace_bytes = 0;  // bytes for each concurrent run
  std::int64_t drawn_offset = 0;     // offset of the counter of works in the workspace, if
                                     // features.draws_work
  std::int64_t device_bytes = 0;     // size of the arrays that the plan keeps on the device

  // Explanations for people to read.
  std::string reason;        // why this configuration was chosen
  std::string split_reason;  // why rows are split or not; empty if the caller did not ask for a
                             // choice
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
  // The most parts of the longest row that the model may choose; 0: no limit.
  int max_kv_splits = 0;
  // The most batches of a launch; 0: the most that a grid takes. Launches follow one another, so
  // the states of all launches share the workspace.
  std::int64_t max_batches = 0;
  // Plans a general kernel (KernelFeatures::general). Its works are counted off.
  bool general = false;
  // How persistent CTAs get their works. A counter for drawing works is in the plan's workspace, so
  // only callers who provide a workspace may choose it.
  Dealt dealt = Dealt::kCountedOff;
};

// The number of tile rows, or of parts of them, of each head.
std::int64_t launched_rows(const LaunchPlan& plan);

// Plans a problem. If the tiles do not allow the heads or rows that the first configuration
// computes together (group.h), the plan takes the second configuration of the choice. Requires:
// validate(problem) passes; the problem's pattern is not a sum (attention/run/branched_forward.h
// makes a plan for each branch). Throws as make_tile_list, pattern::emit and score_code do, and
// Error{kUnsupported} if the tiles do not allow the only configuration of the choice. With
// ListForm::kShortest, all lengths of a grid share the list (attention/tiles/tile_grid.h), and the
// cache returns a list that was made before. A list of another form is made for these lengths only.
LaunchPlan make_plan(const Problem& problem, const Choice& choice, const DeviceLimits& limits,
                     const PlanForm& form = {}, TileCache* cache = nullptr);

// Like make_plan above, for tensors that are shards: the placement has the positions of all rows
// and replaces the problem's own q0 and k0. Requires: the placement has Sq and Sk rows, with all
// positions within kMaxPosition.
LaunchPlan make_plan(Problem problem, const pattern::Placement& placement, const Choice& choice,
                     const DeviceLimits& limits, const PlanForm& form = {},
                     TileCache* cache = nullptr);

}  // namespace annulus::attention

#endif  // ANNULUS_ATTENTION_PLAN_PLAN_H_
