#include "selection/tracker.h"

#include <numbers>

#include "attention/kernels/mma/config.h"
#include "attention/problem/operands.h"
#include "base/fail.h"
#include "base/math.h"
#include "params/importance_params.h"
#include "selection/grid.h"

namespace annulus::selection {
namespace {

// The problem as the measuring kernel computes it: it neither reads nor writes a carried state.
Problem measured(Problem problem) {
  problem.carry_in = problem.carry_out = false;
  return problem;
}

// Returns the selection itself if it scores blocks, else a selection with the same blocks that
// does.
Selection scored(Selection selection) {
  selection.rule = SelectionRule::kTopK;
  return selection;
}

SelectionPlan plan_of(const Problem& problem, const Selection& selection,
                      const attention::LaunchPlan& launch) {
  return make_selection_plan(problem, selection, launch);
}

}  // namespace

void validate(const Problem& problem, const Selection& selection, const TrackerOptions& options) {
  validate(problem, selection);
  if (!problem.want_lse) {
    base::fail(
        ErrorCode::kInvalidArgument,
        "masses are measured against LSEs, but the problem does not compute them; set want_lse");
  }
  if (selection.rule != SelectionRule::kGiven) {
    base::fail(ErrorCode::kInvalidArgument,
               "an ImportanceTracker updates the caller's list of blocks; use a selection with the "
               "rule kGiven");
  }
  if (selection.pool == Pool::kAntidiagonal) {
    base::fail(ErrorCode::kUnsupported,
               "a tracker pools by the mean or the maximum, not by antidiagonals");
  }
  if (selection.block_rows % 8 != 0 || selection.block_columns % 8 != 0) {
    base::fail(ErrorCode::kInvalidArgument,
               "blocks of {} x {} cannot be measured; use multiples of 8", selection.block_rows,
               selection.block_columns);
  }
  if (problem.batch > kMaxGridZ) {
    base::fail(ErrorCode::kUnsupported, "{} batches; a tracker takes up to {}", problem.batch,
               kMaxGridZ);
  }
  for (const std::int64_t count : {options.max_added, options.max_dropped}) {
    if (count >= 0 && count <= kMaxPosition) continue;
    base::fail(ErrorCode::kInvalidArgument,
               "max_added is {} and max_dropped {}; give numbers from 0 to 2^30", options.max_added,
               options.max_dropped);
  }
}

attention::LaunchPlan make_measure_plan(const Problem& problem, const Selection& selection,
                                        const attention::DeviceLimits& limits) {
  // measure_blocks.cu has the warps, the shared memory and the arguments of mma_forward.cu and is
  // written for this one tile.
  constexpr attention::MmaConfig kTiles = {
      .tile_rows = 64, .tile_columns = 64, .warps = 4, .stages = 1};
  attention::LaunchPlan plan =
      make_plan(measured(problem), selection, {kTiles, "blocks are measured in it", {}}, limits);
  plan.spec.family = "measure_blocks";
  plan.spec.file = "kernels/selection/measure_blocks.cu";
  plan.spec.entry = "measure_blocks";
  plan.shape.shared_bytes = 2 * problem.dim_qk * (kTiles.tile_rows + kTiles.tile_columns);
  return plan;
}

Tracker::Tracker(const device::ContextPointer& context, jit::KernelCache& kernels,
                 const attention::DeviceLimits& limits, const Problem& problem,
                 const Selection& selection, const TrackerOptions& options)
    : problem_(measured(problem)),
      options_(options),
      forward_(context, kernels, make_measure_plan(problem, selection, limits)),
      kept_(context, kernels, limits.arch, plan_of(problem_, selection, forward_.plan())),
      scored_(context, kernels, limits.arch,
              plan_of(problem_, scored(selection), forward_.plan())) {
  if (problem_.batch == 0 || problem_.seq_q == 0) return;
  update_ = kernels
                .get(jit::KernelSpec{.family = "update_blocks",
                                     .arch = limits.arch,
                                     .file = "kernels/selection/update_blocks.cu",
                                     .entry = "update_blocks",
                                     .structs = {}})
                .kernel->function;
}

std::int64_t Tracker::state_bytes() const {
  const Pass& blocks = kept_.plan().blocks;
  return problem_.batch * problem_.heads * blocks.rows * blocks.columns *
         static_cast<std::int64_t>(sizeof(std::uint64_t));
}

std::int64_t Tracker::workspace_bytes() const {
  return kept_.plan().workspace_bytes + scored_.plan().workspace_bytes;
}

void Tracker::check(const Operands& operands, const void* given, const void* state,
                    const void* workspace) const {
  const auto check_memory = [](const char* name, const void* data, std::uintptr_t alignment) {
    const auto address = reinterpret_cast<std::uintptr_t>(data);
    if (address != 0 && address % alignment == 0) return;
    base::fail(ErrorCode::kInvalidArgument,
               "{} at {:#x} must be device memory at a multiple of {} bytes", name, address,
               alignment);
  };
  check_memory("given", given, 4);
  check_memory("the state", state, 16);
  check_memory("the workspace", workspace, 16);
  attention::check_queries_and_keys(problem_, operands);
  check_memory("LSE", operands.lse, 4);
}

void Tracker::measure(abi::CUstream stream, const Operands& operands, const std::int32_t* given,
                      void* state, void* workspace) const {
  if (state_bytes() == 0) return;
  check(operands, given, state, workspace);
  SelectionBuffers buffers;
  buffers.given = given;
  device::StreamSink to(stream);
  const kernels::TileListParams lists =
      kept_.put(to, operands, buffers, workspace, forward_.lists());
  const attention::LaunchPlan& plan = forward_.plan();
  const Pass& blocks = kept_.plan().blocks;
  kernels::AttentionParams params = forward_.parameters(operands, lists, plan.launches.front());
  kernels::MeasureParams measure = {
      .mass = static_cast<unsigned long long*>(state),
      .rows = static_cast<int>(blocks.rows),
      .columns = static_cast<int>(blocks.columns),
      .block_rows = static_cast<int>(blocks.selection.block_rows),
      .block_columns = static_cast<int>(blocks.selection.block_columns),
      .lse_factor =
          problem_.lse_base == LseBase::kTwo ? 1.0f : static_cast<float>(std::numbers::log2e),
      .padding = 0};
  device::launch(forward_.lookup().kernel->function,
                 {plan.shape.grid_x, plan.shape.grid_y, plan.shape.grid_z}, {plan.shape.threads},
                 static_cast<std::size_t>(plan.shape.shared_bytes), stream, {&params, &measure});
}

// Scores all blocks, turns `given` into bits, launches a kernel that changes these bits, and writes
// them back to `given`.
void Tracker::update(abi::CUstream stream, const Operands& operands, std::int32_t* given,
                     void* state, void* workspace) const {
  if (state_bytes() == 0) return;
  check(operands, given, state, workspace);
  SelectionBuffers buffers;
  buffers.given = given;
  auto* const own = static_cast<std::byte*>(workspace) + kept_.plan().workspace_bytes;
  const Scored scores = scored_.score_only(stream, operands, own);
  unsigned* const kept = kept_.mark_only(stream, buffers, workspace);
  const Pass& blocks = kept_.plan().blocks;
  kernels::UpdateParams params = {.candidates = scores.candidates,
                                  .scores = scores.scores,
                                  .forced = scores.forced,
                                  .kept = kept,
                                  .mass = static_cast<unsigned long long*>(state),
                                  .columns = static_cast<int>(blocks.columns),
                                  .most = static_cast<int>(blocks.selection.max_blocks),
                                  .max_added = static_cast<int>(options_.max_added),
                                  .max_dropped = static_cast<int>(options_.max_dropped)};
  // One warp updates one row of blocks.
  constexpr std::int64_t kEach = kernels::kSelectionWarps;
  device::launch(update_,
                 {static_cast<unsigned>(base::ceil_div(blocks.rows, kEach)),
                  static_cast<unsigned>(problem_.heads), static_cast<unsigned>(problem_.batch)},
                 {kernels::kSelectionThreads}, 0, stream, {&params});
  buffers = {};
  buffers.chosen = given;
  buffers.max_chosen = blocks.selection.max_blocks;
  kept_.write_chosen(stream, buffers, workspace);
}

}  // namespace annulus::selection
