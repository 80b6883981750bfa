#include "selection/selection_plan.h"

#include <fmt/core.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <numbers>
#include <utility>

#include "base/fail.h"
#include "base/math.h"
#include "pattern/batches.h"
#include "pattern/classify.h"
#include "pattern/positions.h"

namespace annulus::selection {
namespace {

constexpr std::int64_t kAlignment = 256;

// log2 of the largest power of two that divides both.
int common_shift(std::int64_t a, std::int64_t b) {
  return std::countr_zero(static_cast<std::uint64_t>(a | b));
}

// The most pieces of `size` that an interval of `length` can touch, if it begins at a multiple of
// `length`.
std::int64_t touched(std::int64_t length, std::int64_t size) {
  if (length % size == 0) return length / size;
  return size % length == 0 ? 1 : base::ceil_div(length, size) + 1;
}

void set_bits(std::uint32_t* words, std::int64_t begin, std::int64_t end) {
  for (std::int64_t i = begin; i < end; ++i) words[i / 32] |= 1u << (i % 32);
}

// Sets the bits of the blocks that a row always keeps; the caller removes those that the row does
// not see.
void force(const Problem& problem, const Pass& pass, std::int64_t row, std::uint32_t* words) {
  const Selection& selection = pass.selection;
  set_bits(words, 0, std::min(selection.sink_blocks, pass.columns));
  if (selection.diagonal_blocks == 0) return;
  // Adding `shift` to a row of Q gives the row of K at the same position.
  const std::int64_t shift = problem.q_position() - problem.k_position();
  const std::int64_t first = row * selection.block_rows + shift;
  const std::int64_t end = std::min((row + 1) * selection.block_rows, problem.seq_q) + shift;
  const std::int64_t begin_block =
      base::floor_div(first, selection.block_columns) - (selection.diagonal_blocks - 1);
  const std::int64_t end_block = base::floor_div(end - 1, selection.block_columns) + 1;
  set_bits(words, std::clamp<std::int64_t>(begin_block, 0, pass.columns),
           std::clamp<std::int64_t>(end_block, 0, pass.columns));
}

// A coarse row has to keep every block that holds a forced block of one of its fine rows.
void force_coarse(const Pass& fine, std::int64_t head, std::int64_t row, Pass* coarse) {
  const std::int64_t factor = fine.selection.coarse_factor;
  std::uint32_t* const to = coarse->forced.data() + (head * coarse->rows + row) * coarse->words;
  for (std::int64_t i = row * factor; i < std::min((row + 1) * factor, fine.rows); ++i) {
    const std::uint32_t* const from = fine.forced.data() + (head * fine.rows + i) * fine.words;
    for (std::int64_t j = 0; j < fine.columns; ++j) {
      if (from[j / 32] >> (j % 32) & 1u) set_bits(to, j / factor, j / factor + 1);
    }
  }
}

// Finds the blocks that each row may and must choose. `fine` is null when the fine pass is made,
// and the fine pass when the coarse pass is made.
Pass make_pass(const Problem& problem, const Selection& selection, const Pass* fine) {
  Pass pass;
  pass.selection = selection;
  pass.rows = selection.rows(problem.seq_q);
  pass.columns = selection.columns(problem.seq_k);
  pass.words = base::ceil_div(pass.columns, 32);
  if (selection.pool == Pool::kAntidiagonal) pass.parts = selection.block_rows / selection.stride;
  pass.visible_heads = problem.pattern.distinct_heads(problem.heads);
  const auto count = static_cast<std::size_t>(pass.visible_heads * pass.rows * pass.words);
  pass.visible.assign(count, 0u);
  pass.forced.assign(count, 0u);
  // All batches see the same, as validate() in choose.cc checks. So this tree has no batches(...),
  // and one set of bits is enough for all.
  const Pattern shared = pattern::for_batches(problem.pattern, problem.batch);
  pattern::Classifier classifier(shared, attention::placement_of(problem), selection.block_rows,
                                 selection.block_columns);
  std::int64_t max_forced = 0;
  std::int64_t max_visible = 0;
  for (std::int64_t head = 0; head < pass.visible_heads; ++head) {
    for (std::int64_t row = 0; row < pass.rows; ++row) {
      const std::int64_t line = (head * pass.rows + row) * pass.words;
      std::uint32_t* const visible = pass.visible.data() + line;
      std::uint32_t* const forced = pass.forced.data() + line;
      std::int64_t seen = 0;
      for (const pattern::BlockRun& run : classifier.row(head, row)) {
        set_bits(visible, run.begin, run.end);
        seen += run.end - run.begin;
      }
      if (fine == nullptr) {
        force(problem, pass, row, forced);
      } else {
        force_coarse(*fine, head, row, &pass);
      }
      std::int64_t kept = 0;
      for (std::int64_t word = 0; word < pass.words; ++word) {
        forced[word] &= visible[word];
        kept += std::popcount(forced[word]);
      }
      max_forced = std::max(max_forced, kept);
      max_visible = std::max(max_visible, seen);
    }
  }
  // A row chooses max_blocks, or its forced blocks if these are more. With kGiven, the forced
  // blocks are added to the listed blocks. No row chooses more blocks than it sees.
  const bool bounded = selection.max_blocks > 0;
  std::int64_t most = bounded ? std::max(selection.max_blocks, max_forced) : max_visible;
  if (selection.rule == SelectionRule::kGiven) most = selection.max_blocks + max_forced;
  pass.most = std::min(most, max_visible);
  return pass;
}

// The largest number of entries that a list can have. A row of tiles touches some rows of blocks;
// each of these chooses up to `most` blocks, and each block touches some tiles. But a row never has
// more tiles than the pattern's own list has.
std::int64_t bound_tiles(const SelectionPlan& plan, const attention::TileList& base) {
  const Selection& selection = plan.blocks.selection;
  const std::int64_t of_row = touched(plan.tile_rows, selection.block_rows) * plan.blocks.most *
                              touched(selection.block_columns, plan.tile_columns);
  std::int64_t longest = 0;
  for (std::int64_t list = 0; list < base.lists; ++list) {
    std::int64_t tiles = 0;
    for (std::int64_t row = 0; row < base.row_tiles; ++row) {
      const auto at = static_cast<std::size_t>(list * (base.row_tiles + 1) + row);
      tiles += std::min(base.row_begin[at + 1] - base.row_begin[at], of_row);
    }
    longest = std::max(longest, tiles);
  }
  return longest;
}

// Sets the offset of every part in the workspace.
void place(const attention::LaunchPlan& launch, SelectionPlan* plan) {
  const Problem& problem = plan->problem;
  const std::int64_t lists = problem.batch * problem.heads;
  const auto take = [&](std::int64_t count, std::int64_t size) {
    const std::int64_t offset = plan->workspace_bytes;
    if (count > std::numeric_limits<std::int64_t>::max() / 16 / size) {
      base::fail(ErrorCode::kUnsupported,
                 "choosing blocks of {} x {} of this problem needs more than 2^59 bytes; use "
                 "larger blocks",
                 plan->blocks.selection.block_rows, plan->blocks.selection.block_columns);
    }
    plan->workspace_bytes += base::round_up(count * size, kAlignment);
    return offset;
  };
  for (Pass* pass : {plan->coarse ? &*plan->coarse : nullptr, &plan->blocks}) {
    if (pass == nullptr) continue;
    if (pass->pooled()) {
      pass->pooled_q = take(lists * pass->rows * problem.dim_qk, 4);
      pass->pooled_k = take(problem.batch * problem.kv_heads * pass->columns * problem.dim_qk, 4);
    }
    if (pass->scored()) pass->scores = take(lists * pass->rows * pass->parts * pass->words * 32, 4);
    pass->chosen = take(lists * pass->rows * pass->words, 4);
  }
  plan->attend = take(launch.workspace_bytes, 1);
  plan->counts = take(lists * plan->row_tiles, 4);
  plan->row_begin = take(lists * (plan->row_tiles + 1), 8);
  plan->row_order = take(lists * plan->row_tiles, 4);
  plan->tiles = take(lists * plan->capacity, 4);
  if (plan->masked) {
    plan->tile_masks = take(lists * plan->capacity, 4);
    plan->mask_words = take(lists * plan->capacity * plan->words_of_tile, 4);
  }
}

std::string rule_text(const Selection& selection) {
  switch (selection.rule) {
    case SelectionRule::kTopK:
      return fmt::format("the best {} of each row", selection.max_blocks);
    case SelectionRule::kTopP:
      return selection.max_blocks > 0
                 ? fmt::format("the best with {} of each row's mass, at most {}", selection.mass,
                               selection.max_blocks)
                 : fmt::format("the best with {} of each row's mass", selection.mass);
    case SelectionRule::kGiven:
      return fmt::format("at most {} of each row, given by the caller", selection.max_blocks);
  }
  return "";
}

std::string pool_text(const Selection& selection) {
  switch (selection.pool) {
    case Pool::kMean:
      return "the means of their rows of Q and K";
    case Pool::kMax:
      return "the element-wise maxima of their rows of Q and K";
    case Pool::kAntidiagonal:
      return fmt::format("the antidiagonals of their {0} x {0} cells", selection.stride);
  }
  return "";
}

std::vector<std::string> describe(const SelectionPlan& plan) {
  const Selection& selection = plan.blocks.selection;
  std::vector<std::string> lines;
  lines.push_back(fmt::format(
      "blocks of {} x {} are chosen on the device at each run: {}; always {} at the start of a row "
      "and {} up to its diagonal",
      selection.block_rows, selection.block_columns, rule_text(selection), selection.sink_blocks,
      selection.diagonal_blocks));
  if (plan.blocks.scored()) {
    lines.push_back(fmt::format("blocks are scored by {}", pool_text(selection)));
  }
  if (plan.coarse) {
    const Selection& coarse = plan.coarse->selection;
    lines.push_back(fmt::format("among those inside the best {} blocks of {} x {} of each row",
                                coarse.max_blocks, coarse.block_rows, coarse.block_columns));
  }
  lines.push_back(
      fmt::format("lists are made on the device: at most {} blocks of a row and {} "
                  "tiles of a head; {} bytes of workspace",
                  plan.blocks.most, plan.capacity, plan.workspace_bytes));
  lines.push_back("long tile rows: not split, as only the device knows how long they are");
  return lines;
}

}  // namespace

Selection coarse_selection(const Selection& selection) {
  Selection coarse = selection;
  coarse.block_rows *= selection.coarse_factor;
  coarse.block_columns *= selection.coarse_factor;
  coarse.rule = SelectionRule::kTopK;
  coarse.max_blocks = selection.coarse_blocks;
  coarse.pool = Pool::kMean;
  coarse.coarse_factor = 0;
  return coarse;
}

SelectionPlan make_selection_plan(const Problem& problem, const Selection& selection,
                                  const attention::LaunchPlan& launch) {
  SelectionPlan plan;
  plan.problem = problem;
  plan.keys = launch.keys;
  plan.blocks = make_pass(problem, selection, nullptr);
  if (selection.coarse_factor > 0) {
    plan.coarse = make_pass(problem, coarse_selection(selection), &plan.blocks);
  }

  if ((plan.blocks.pooled() || plan.coarse) && problem.heads + problem.kv_heads > kMaxHeads) {
    base::fail(ErrorCode::kUnsupported,
               "blocks are pooled by {} heads of Q and {} of K in one launch, at most {} together; "
               "use fewer heads in one call",
               problem.heads, problem.kv_heads, kMaxHeads);
  }

  // The selected tiles are a subset of the plan's own list, which gives their sizes and bounds.
  const attention::TileList& base = *launch.tiles;
  plan.tile_rows = base.tile_rows;
  plan.tile_columns = base.tile_columns;
  plan.row_tiles = base.row_tiles;
  // If both block sizes are multiples of the tile's sizes, each tile lies in one block and is
  // listed as a whole. Otherwise each tile has one bit for each granule, a piece of the tile that
  // lies in one block.
  plan.masked = selection.block_rows % plan.tile_rows != 0 ||
                selection.block_columns % plan.tile_columns != 0;
  plan.granule_row_shift = common_shift(plan.tile_rows, selection.block_rows);
  plan.granule_column_shift = common_shift(plan.tile_columns, selection.block_columns);
  plan.words_of_tile = base::ceil_div(
      (plan.tile_rows >> plan.granule_row_shift) * (plan.tile_columns >> plan.granule_column_shift),
      32);
  plan.capacity = bound_tiles(plan, base);
  // tile_masks indexes mask_words, and both are indexed by int on the device.
  const std::int64_t lists = std::max<std::int64_t>(1, problem.batch * problem.heads);
  const std::int64_t of_entry = plan.masked ? plan.words_of_tile : 1;
  if (plan.capacity > std::numeric_limits<std::int32_t>::max() / lists / of_entry) {
    base::fail(ErrorCode::kUnsupported,
               "{} lists of up to {} tiles with {} words each are more than 2^31; use larger "
               "blocks, a smaller max_blocks or fewer batches in one call",
               lists, plan.capacity, of_entry);
  }
  place(launch, &plan);
  plan.decisions = describe(plan);
  return plan;
}

float base_two_scale(const Problem& problem) {
  return static_cast<float>(problem.effective_scale() * std::numbers::log2e);
}

std::uint64_t mass_target(const Selection& selection) {
  if (selection.rule != SelectionRule::kTopP) return 0;
  constexpr auto kUnits = static_cast<double>(kMassUnit);
  return static_cast<std::uint64_t>(std::max(1.0, std::ceil(selection.mass * kUnits)));
}

// The product is computed in two parts, because a row may have 2^30 blocks with a mass of 2^24
// each, and one product would overflow.
std::uint64_t wanted_mass(std::uint64_t mass, std::uint64_t target) {
  return (mass >> 20) * target + (((mass & 0xfffff) * target + 0xfffff) >> 20);
}

}  // namespace annulus::selection
