#ifndef ANNULUS_ATTENTION_PLAN_H_
#define ANNULUS_ATTENTION_PLAN_H_

// What will be done about a problem, decided without touching a device: which kernel, which tiles,
// which launches. A LaunchPlan is data that can be printed, tested and compared; forward.h carries
// it out. The same arguments give the same plan on every machine.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "annulus/attention.h"
#include "attention/kernel_config.h"
#include "attention/kernel_source.h"
#include "attention/row_split.h"
#include "attention/score.h"
#include "attention/score_code.h"
#include "attention/tile_cache.h"
#include "attention/tile_list.h"
#include "jit/spec.h"
#include "pattern/mask_code.h"

namespace annulus::attention {

// What a device allows; read from its attributes by whoever plans.
struct DeviceLimits {
  jit::Arch arch;
  int multiprocessors = 1;
  std::int64_t shared_bytes_per_block = 0;  // the most dynamic shared memory a CTA may have
};

// A configuration that was not taken.
struct Rejected {
  KernelConfig config;
  std::string reason;
};

// A configuration for the problem, why it was taken, and why each other one of the table was not.
struct Choice {
  KernelConfig config;
  std::string reason;
  std::vector<Rejected> rejected;
};

// A sentence that says why a configuration is not possible on a device, or nothing where it is.
std::optional<std::string> why_not(const KernelConfig& config, const Dims& dims,
                                   const DeviceLimits& limits);

// The same for operands that lie so; nothing where it is not known how they will.
std::optional<std::string> why_not(const KernelConfig& config, const Problem& problem,
                                   const std::optional<OperandStrides>& strides);
// The same of the dtype of Q, K and V.
std::optional<std::string> why_not(const KernelConfig& config, Dtype dtype);

// The heuristic. placed: positions will be read row by row, as where tensors are shards of several
// segments. Throws Error{kUnsupported} where nothing in the table fits the device.
Choice choose_config(const Problem& problem, const DeviceLimits& limits,
                     const std::optional<OperandStrides>& strides = std::nullopt,
                     bool placed = false);

// A configuration that the caller asked for by its text. Throws Error{kInvalidArgument} where the
// text is none, Error{kUnsupported} where the device, the head dims or the strides do not allow it.
Choice forced_config(const Problem& problem, const DeviceLimits& limits, const std::string& text,
                     const std::optional<OperandStrides>& strides = std::nullopt);

// Batches [first_batch, first_batch + batches) in one launch.
struct BatchRange {
  std::int64_t first_batch = 0;
  std::int64_t batches = 0;
};

struct LaunchPlan {
  Problem problem;
  pattern::Placement placement;
  KernelConfig config;
  WorkGroup group;
  pattern::MaskCode mask;
  jit::KernelSpec spec;
  std::shared_ptr<const TileList> tiles;  // perhaps that of other plans as well; never null
  RowSplit split;                         // empty: a CTA takes whole rows
  jit::KernelSpec merge_spec;  // where rows are split: of the launch that follows each launch
  // Where the kernel reads positions row by row: of each row, padded to whole tiles.
  std::vector<std::int32_t> q_positions;
  std::vector<std::int32_t> k_positions;
  ScoreNumbers score;
  ScoreTables score_tables;
  ScoreCode score_code;
  float lse_factor = 1;
  LaunchShape shape;                   // grid_z is that of the largest launch
  std::vector<BatchRange> launches;    // empty where B or Sq is 0
  std::int64_t workspace_bytes = 0;    // that each concurrent run needs of its own
  std::int64_t device_bytes = 0;       // that the plan holds
  std::vector<std::string> decisions;  // one line each, for people
  std::vector<Rejected> rejected;
};

// What whoever plans has to say about how.
struct PlanForm {
  ListForm list = ListForm::kShortest;
  // Into how many parts the longest tile rows are split, and others into parts as long. 1: none; 0:
  // as the pipe model finds. A plan with parts needs workspace.
  int split_rows = 1;
};

// Tile rows, or parts of them, of each head.
std::int64_t launched_rows(const LaunchPlan& plan);

// Requires: validate(problem) passes; its pattern is no sum (branched_forward.h). Throws as
// make_tile_list, pattern::emit and score_code do. The shortest list is one that all lengths of its
// grid share (tile_grid.h); with a cache it is one that was made before, where there is such a one.
// A list of another form is of these lengths alone.
LaunchPlan make_plan(const Problem& problem, const Choice& choice, const DeviceLimits& limits,
                     const PlanForm& form = {}, TileCache* cache = nullptr);

// The same for tensors that are shards: Sq and Sk are the rows of the placement, and the problem's
// own q0 and k0 are replaced by it. Requires: the placement has as many rows, all positions within
// kMostPosition.
LaunchPlan make_plan(Problem problem, const pattern::Placement& placement, const Choice& choice,
                     const DeviceLimits& limits, const PlanForm& form = {},
                     TileCache* cache = nullptr);

}  // namespace annulus::attention

#endif  // ANNULUS_ATTENTION_PLAN_H_
