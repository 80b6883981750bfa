#ifndef ANNULUS_SELECTION_SELECTION_PLAN_H_
#define ANNULUS_SELECTION_SELECTION_PLAN_H_

// All decisions about choosing blocks that need no device: the bounds, the blocks that may and must
// be chosen, and the offsets of all parts of a run's workspace. selector.h runs the plan.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "annulus/selection.h"
#include "attention/plan/plan.h"

namespace annulus::selection {

// Throws Error{kInvalidArgument}, which names the wrong value and valid values, and
// Error{kUnsupported} for a problem whose pattern is a sum, has blocks() of its own, or shows
// different pairs to batches, and for too many blocks.
void validate(const Problem& problem, const Selection& selection);

// Why a configuration cannot visit tiles that are chosen block by block, or nullopt if it can.
std::optional<std::string> why_not(const attention::KernelConfig& config);

// The configuration for a problem whose tiles are chosen block by block. Throws as
// attention::choose_config.
attention::Choice choose_config(const Problem& problem, const Selection& selection,
                                const attention::DeviceLimits& limits,
                                const std::optional<OperandStrides>& strides = std::nullopt);

// The plan of the attention itself. Its list is the list of the problem's pattern, from which the
// device takes tiles. Its kernel reads bits of blocks if a tile may hold several blocks.
attention::LaunchPlan make_plan(const Problem& problem, const Selection& selection,
                                const attention::Choice& choice,
                                const attention::DeviceLimits& limits);

// Blocks of one size, from which each row chooses some: first the coarse blocks, then the fine
// blocks. Offsets are bytes from the start of the workspace; every part is 256-byte aligned.
struct Pass {
  Selection selection;
  std::int64_t rows = 0;     // rows of blocks: ceil(Sq / R)
  std::int64_t columns = 0;  // columns of blocks: ceil(Sk / C)
  std::int64_t words = 0;    // words of 32 columns
  std::int64_t parts = 1;    // rows of scores in a row of blocks: R / S with antidiagonals, else 1
  std::int64_t visible_heads = 0;  // heads h and h + visible_heads see the same
  // [visible_heads, rows, words]: bits of the blocks that a row may choose, and bits of the blocks
  // that it must choose.
  std::vector<std::uint32_t> visible;
  std::vector<std::uint32_t> forced;
  std::int64_t most = 0;  // the most blocks that a run may choose in any row

  std::int64_t pooled_q = 0, pooled_k = 0;  // fp32 [B, H, rows, Dqk], [B, Hkv, columns, Dqk]
  std::int64_t scores = 0;                  // fp32 [B, H, rows, parts, words 32]
  std::int64_t chosen = 0;                  // bits [B, H, rows, words]

  bool scored() const { return selection.rule != SelectionRule::kGiven; }
  bool pooled() const { return scored() && selection.pool != Pool::kAntidiagonal; }
};

struct SelectionPlan {
  Problem problem;
  pattern::Interval keys;  // the rows of K that kernels read
  Pass blocks;
  std::optional<Pass> coarse;

  // The tiles that the attention visits.
  std::int64_t tile_rows = 0, tile_columns = 0;  // M and N
  std::int64_t row_tiles = 0;
  bool masked = false;  // a tile may hold several blocks, and then has bits
  int granule_row_shift = 0, granule_column_shift = 0;
  std::int64_t words_of_tile = 0;
  std::int64_t capacity = 0;                              // entries of each list
  std::int64_t counts = 0, row_begin = 0, row_order = 0;  // offsets in the workspace
  std::int64_t tiles = 0, tile_masks = 0, mask_words = 0;
  std::int64_t attend = 0;  // the offset of the workspace of the attention itself
  std::int64_t workspace_bytes = 0;
  std::vector<std::string> decisions;  // one line each, for people to read
};

// Requires: `launch` is the result of make_plan for the same arguments. Throws Error{kUnsupported}
// if the lists would have more than 2^31 entries or words.
SelectionPlan make_selection_plan(const Problem& problem, const Selection& selection,
                                  const attention::LaunchPlan& launch);

// A layout that keeps nothing, with the selection's blocks and the problem's heads.
BlockLayout empty_layout(const Problem& problem, const Selection& selection);

// The coarse pass of a selection, as a selection of its own. Requires: the selection has one.
Selection coarse_selection(const Selection& selection);

// log2(e) times the problem's scale, and the mass of kTopP in units of 2^-20 (0 for other rules),
// as the kernels read them.
float base_two_scale(const Problem& problem);
std::uint64_t mass_target(const Selection& selection);
constexpr std::uint64_t kMassUnit = 1u << 20;

// The share `target` / 2^20 of a row's mass, rounded up. It is exact for every mass of 64 bits and
// every target of at most 2^20.
std::uint64_t wanted_mass(std::uint64_t mass, std::uint64_t target);

}  // namespace annulus::selection

#endif  // ANNULUS_SELECTION_SELECTION_PLAN_H_
