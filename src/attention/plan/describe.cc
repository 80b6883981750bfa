#include "attention/plan/describe.h"

#include <fmt/core.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "attention/kernels/family.h"
#include "attention/kernels/withheld.h"

namespace annulus::attention {
namespace {

const char* tile_order_of(kernels::TileOrder tile_order) {
  switch (tile_order) {
    case kernels::TileOrder::kBand:
      return "computed from its number, as every query sees one run of keys that moves on with it";
    case kernels::TileOrder::kRuns:
      return "one run or two, as no row has more: from their numbers in groups, else read once a "
             "row";
    case kernels::TileOrder::kList:
    case kernels::TileOrder::kAny:  // only general kernels have it, and no list does
      break;
  }
  return "listed one by one";
}

// Collects lines.
class Lines {
 public:
  template <typename... Arguments>
  void say(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
    lines_.push_back(fmt::format(format, std::forward<Arguments>(arguments)...));
  }
  std::vector<std::string> take() { return std::move(lines_); }

 private:
  std::vector<std::string> lines_;
};

void say_kernel(const LaunchPlan& plan, const DeviceLimits& limits, Lines* lines) {
  const Problem& problem = plan.problem;
  const Family& family = family_of(plan.config);
  lines->say("family {}: {} {}", family.name, family.instructions, jit::to_string(limits.arch));
  if (problem.dtype == Dtype::kFloat8E4M3) {
    const ScaleBlocks& blocks = problem.scale_blocks;
    const auto text = [](std::int64_t rows) {
      return rows == 0 ? std::string("a head") : fmt::format("{} rows", rows);
    };
    lines->say("scales: one for {} of Q, {} of K, {} of V; O is {}", text(blocks.q), text(blocks.k),
               text(blocks.v), to_string(problem.output_dtype()));
  }
  lines->say("configuration {}: {}", to_string(plan.config), plan.reason);
  if (const auto why = why_withheld(plan.config, plan.features.dims, limits)) {
    lines->say("{}; this configuration runs because the caller requested it", *why);
  }
  if (plan.features.general) {
    lines->say("general kernel: mask, tile order, score and state are read from its parameters");
  }
}

void say_score(const LaunchPlan& plan, Lines* lines) {
  const Problem& problem = plan.problem;
  const kernels::Score kind = plan.features.score;
  if (plan.features.general) {
    lines->say("mask of partial tiles: a program of {} numbers and lists", plan.mask.lists.size());
  } else {
    lines->say("mask of partial tiles: {}", plan.mask.text);
  }
  lines->say("score: {}{}{}{}",
             kind == kernels::Score::kSoftcap         ? "soft-capped"
             : kind == kernels::Score::kPositiveScale ? "positive scale, folded into the exponent"
                                                      : "scale applied to each score",
             problem.score.alibi.empty() ? "" : ", ALiBi slopes",
             problem.score.bias.empty() ? "" : ", bias by distance",
             problem.score.sink_logit.empty() ? "" : ", sink logit in the last launch");
  if (plan.score_code.structure.present()) {
    lines->say("score_mod: {}, {}", plan.score_code.structure.text,
               plan.score_code.structure.costly ? "a few columns at a time" : "written out");
  }
  if (problem.carry_in || problem.carry_out) {
    lines->say("state carried {}",
               problem.carry_in ? (problem.carry_out ? "in and out" : "in") : "out");
  }
}

// Adds the share of its tiles that each batch computes. Batches take the patterns by turns.
void say_batches(const Problem& problem, const TileList& tiles, Lines* lines) {
  constexpr std::int64_t kMaxNamed = 16;
  const std::int64_t distinct = problem.pattern.distinct_batches(problem.batch);
  std::string shares;
  for (std::int64_t batch = 0; batch < std::min(distinct, kMaxNamed); ++batch) {
    fmt::format_to(std::back_inserter(shares), "{}{:.4f}", batch == 0 ? "" : ", ",
                   tile_density(problem, tiles, batch).value);
  }
  lines->say(
      "batches differ in what they see and repeat after {}: of the tiles of "
      "batches 0 to {} are computed {}{}",
      problem.pattern.batches(), std::min(distinct, kMaxNamed) - 1, shares,
      distinct > kMaxNamed ? ", ..." : "");
}

void say_tiles(const LaunchPlan& plan, Lines* lines) {
  const Problem& problem = plan.problem;
  const TileList& tiles = *plan.tiles;
  if (plan.features.positions == kernels::Positions::kOneSegment) {
    lines->say("positions: queries from {}, keys from {}", problem.q_position(),
               problem.k_position());
  } else {
    lines->say("positions: queries in {} and keys in {} segments, {}", plan.placement.q.size(),
               plan.placement.k.size(),
               plan.features.positions == kernels::Positions::kTwoSegments
                   ? "each cut into tiles of its own"
                   : "read row by row in partial tiles");
  }
  lines->say(
      "tiles {} x {}: {} full and {} partial of {} x {} in {} list{}, longest row {}, {} empty "
      "rows",
      tiles.tile_rows, tiles.tile_columns, tiles.full_tiles, tiles.partial_tiles, tiles.row_tiles,
      tiles.column_tiles, tiles.lists, tiles.lists == 1 ? "" : "s", tiles.longest_row,
      tiles.empty_rows);
  lines->say("tiles of a row: {}", tile_order_of(tiles.tile_order));
  if (plan.features.distinct_batches > 1) say_batches(problem, tiles, lines);
  if (const int cluster = cta_shape(plan.config).cluster; cluster > 1) {
    lines->say("clusters of {} CTAs copy K and V once for all: {}", cluster,
               plan.group.rows > 1 ? "for neighbouring tile rows, which see the same"
                                   : "for heads that share them and see the same");
  }
  if (plan.mask.uses_blocks) {
    lines->say("block masks: one bit for {} x {} pairs, {} words", 1 << tiles.granule_row_shift,
               1 << tiles.granule_column_shift, tiles.mask_words.size());
  }
}

void say_parts(const LaunchPlan& plan, Lines* lines) {
  if (!plan.split_reason.empty()) lines->say("long tile rows: {}", plan.split_reason);
  if (plan.split.empty()) return;
  lines->say(
      "parts: {} and whole rows for {} tile rows of a list, {} of them split, into parts of up "
      "to {} tiles, whose states a second launch joins in their order",
      plan.split.segment_count, plan.tiles->row_tiles, plan.split.merged_count,
      plan.split.max_tiles);
}

void say_launches(const LaunchPlan& plan, const DeviceLimits& limits, Lines* lines) {
  if (plan.launches.empty()) {
    lines->say("nothing to launch: there are no query rows");
    return;
  }
  const std::int64_t rows = launched_rows(plan) *
                            (plan.problem.heads / cta_shape(plan.config).heads) *
                            plan.problem.batch;
  const std::int64_t ctas = family_of(plan.config).persistent ? plan.shape.grid_x : rows;
  lines->say(
      "{} launch{} of {} CTAs x {} threads with {} bytes of shared memory, {:.1f} {} per "
      "multiprocessor{}",
      plan.launches.size(), plan.launches.size() == 1 ? "" : "es", ctas, plan.shape.threads,
      plan.shape.shared_bytes,
      static_cast<double>(rows) / static_cast<double>(std::max(1, limits.multiprocessors)),
      plan.split.empty() ? "tile rows" : "parts and rows",
      plan.split.empty() ? "" : ", each followed by one that joins");
}

void say_works(const LaunchPlan& plan, Lines* lines) {
  lines->say("works: {}", plan.features.draws_work
                              ? "drawn from a counter in the workspace, as the model predicts that "
                                "counted off they would end unevenly"
                              : "counted off, as the model predicts that drawing them from a "
                                "counter would not pay");
  if (const HeadStart& ahead = plan.head_start; !ahead.empty()) {
    lines->say(
        "head start: in the last {} sets of heads whose K and V fit into L2 together the longest "
        "{} of all heads come first, as they would end last",
        ahead.sets, ahead.rows == 1 ? "work" : fmt::format("{} works", ahead.rows));
  }
}

}  // namespace

std::vector<std::string> describe(const LaunchPlan& plan, const DeviceLimits& limits) {
  Lines lines;
  say_kernel(plan, limits, &lines);
  say_score(plan, &lines);
  say_tiles(plan, &lines);
  say_parts(plan, &lines);
  say_launches(plan, limits, &lines);
  lines.say(
      "order: tile rows with the most tiles first; columns ascending, so that the sums have one "
      "order");
  if (family_of(plan.config).pace(plan.config).deal == Deal::kCounter) {
    say_works(plan, &lines);
  }
  lines.say("memory: {} bytes held by the plan, {} bytes of workspace", plan.device_bytes,
            plan.workspace_bytes);
  return lines.take();
}

}  // namespace annulus::attention
