#include "attention/plan.h"

#include <algorithm>
#include <numbers>
#include <optional>

#include "attention/tile_grid.h"
#include "base/fail.h"

namespace annulus::attention {
namespace {

constexpr std::int64_t kMostGridZ = 65535;
// Of one launch of CTAs that stay: an int counts them.
constexpr std::int64_t kMostWorks = std::int64_t{1} << 30;

std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

// With `rows` tile rows, or parts of them, for each head.
std::vector<BatchRange> split_batches(const Problem& problem, const KernelConfig& config,
                                      std::int64_t rows) {
  std::vector<BatchRange> launches;
  if (problem.seq_q == 0) return launches;
  std::int64_t most = kMostGridZ;
  if (is_wgmma(config.family)) {
    most = std::clamp<std::int64_t>(kMostWorks / (rows * problem.heads), 1, most);
  }
  for (std::int64_t first = 0; first < problem.batch; first += most) {
    launches.push_back({first, std::min(most, problem.batch - first)});
  }
  return launches;
}

// The position of each row, and of as many more as fill the last tile.
std::vector<std::int32_t> positions_of(const std::vector<Segment>& segments, std::int64_t tile) {
  std::vector<std::int32_t> positions;
  for (const Segment& segment : segments) {
    for (std::int64_t i = 0; i < segment.length; ++i) {
      positions.push_back(static_cast<std::int32_t>(segment.start + i));
    }
  }
  const auto rows = static_cast<std::int64_t>(positions.size());
  positions.resize(static_cast<std::size_t>(ceil_div(rows, tile) * tile), 0);
  return positions;
}

// From the first position to the last one.
pattern::Interval hull_of(const std::vector<Segment>& segments) {
  pattern::Interval hull;
  for (const Segment& segment : segments) {
    const pattern::Interval positions = {segment.start, segment.start + segment.length};
    if (positions.empty()) continue;
    hull = hull.empty() ? positions
                        : pattern::Interval{std::min(hull.begin, positions.begin),
                                            std::max(hull.end, positions.end)};
  }
  return hull;
}

const char* walk_of(kernels::Walk walk) {
  switch (walk) {
    case kernels::Walk::kBand:
      return "computed from its number, as every query sees one run of keys that moves on with it";
    case kernels::Walk::kRuns:
      return "one run or two, read once a row, as no row has more";
    case kernels::Walk::kList:
      break;
  }
  return "listed one by one";
}

std::vector<std::string> describe(const LaunchPlan& plan, const Choice& choice,
                                  const DeviceLimits& limits, const std::string& split) {
  const Problem& problem = plan.problem;
  const TileList& tiles = *plan.tiles;
  std::vector<std::string> lines;
  const auto say = [&]<typename... Arguments>(fmt::format_string<Arguments...> format,
                                              Arguments&&... arguments) {
    lines.push_back(fmt::format(format, std::forward<Arguments>(arguments)...));
  };
  if (plan.config.family == Family::kMma) {
    say("family mma: cp.async and mma.sync run on {}", jit::to_string(limits.arch));
  } else {
    say("family {}: tensor maps and warpgroup products of {}", to_string(plan.config.family),
        jit::to_string(limits.arch));
  }
  if (problem.dtype == Dtype::kFloat8E4M3) {
    const ScaleBlocks& blocks = problem.scale_blocks;
    const auto text = [](std::int64_t rows) {
      return rows == 0 ? std::string("a head") : fmt::format("{} rows", rows);
    };
    say("scales: one for {} of Q, {} of K, {} of V; O is {}", text(blocks.q), text(blocks.k),
        text(blocks.v), to_string(problem.output_dtype()));
  }
  say("configuration {}: {}", to_string(plan.config), choice.reason);
  say("mask of partial tiles: {}", plan.mask.text);
  const kernels::Score kind = features_of(problem, plan.placement, plan.mask).score;
  say("score: {}{}{}{}",
      kind == kernels::Score::kSoftcap         ? "soft-capped"
      : kind == kernels::Score::kPositiveScale ? "positive scale, folded into the exponent"
                                               : "scale applied to each score",
      problem.score.alibi.empty() ? "" : ", ALiBi slopes",
      problem.score.bias.empty() ? "" : ", bias by distance",
      problem.score.sink_logit.empty() ? "" : ", sink logit in the last launch");
  if (plan.score_code.structure.present()) {
    say("score_mod: {}, {}", plan.score_code.structure.text,
        plan.score_code.structure.costly ? "a few columns at a time" : "written out");
  }
  if (problem.carry_in || problem.carry_out) {
    say("state carried {}", problem.carry_in ? (problem.carry_out ? "in and out" : "in") : "out");
  }
  if (plan.q_positions.empty()) {
    say("positions: queries from {}, keys from {}", problem.q_position(), problem.k_position());
  } else {
    say("positions: queries in {} and keys in {} segments, read row by row in partial tiles",
        plan.placement.q.size(), plan.placement.k.size());
  }
  say("tiles {} x {}: {} full and {} partial of {} x {} in {} list{}, longest row {}, {} empty "
      "rows",
      tiles.tile_rows, tiles.tile_columns, tiles.full_tiles, tiles.partial_tiles, tiles.row_tiles,
      tiles.column_tiles, tiles.lists, tiles.lists == 1 ? "" : "s", tiles.longest_row,
      tiles.empty_rows);
  say("tiles of a row: {}", walk_of(tiles.walk));
  if (plan.config.cluster > 1) {
    say("clusters of {} CTAs copy K and V once for all: {}", plan.config.cluster,
        plan.group.rows > 1 ? "for neighbouring tile rows, which see the same"
                            : "for heads that share them and see the same");
  }
  if (plan.mask.uses_blocks) {
    say("block masks: one bit for {} x {} pairs, {} words", 1 << tiles.granule_row_shift,
        1 << tiles.granule_column_shift, tiles.mask_words.size());
  }
  if (!split.empty()) say("long tile rows: {}", split);
  if (!plan.split.empty()) {
    say("parts: {} and whole rows for {} tile rows of a list, {} of them split, into parts of up "
        "to {} tiles, whose states a second launch joins in their order",
        plan.split.segment_count, tiles.row_tiles, plan.split.merged_count, plan.split.most_tiles);
  }
  if (plan.launches.empty()) {
    say("nothing to launch: there are no query rows");
  } else {
    const std::int64_t rows =
        launched_rows(plan) * (problem.heads / plan.config.heads) * problem.batch;
    const std::int64_t ctas = plan.config.family == Family::kMma ? rows : plan.shape.grid_x;
    say("{} launch{} of {} CTAs x {} threads with {} bytes of shared memory, {:.1f} {} per "
        "multiprocessor{}",
        plan.launches.size(), plan.launches.size() == 1 ? "" : "es", ctas, plan.shape.threads,
        plan.shape.shared_bytes,
        static_cast<double>(rows) / static_cast<double>(std::max(1, limits.multiprocessors)),
        plan.split.empty() ? "tile rows" : "parts and rows",
        plan.split.empty() ? "" : ", each followed by one that joins");
  }
  say("order: tile rows with the most tiles first; columns ascending, so that the sums have one "
      "order");
  say("memory: {} bytes held by the plan, {} bytes of workspace", plan.device_bytes,
      plan.workspace_bytes);
  return lines;
}

// Why so many heads cannot be one work: they read one list, and one head of K and V.
std::optional<std::string> why_not_together(const LaunchPlan& plan, int heads) {
  const Problem& problem = plan.problem;
  const std::int64_t sharing = problem.heads / problem.kv_heads;
  if (sharing % heads != 0) {
    return fmt::format("{} query heads for {} of K and V share one in groups of {}", problem.heads,
                       problem.kv_heads, sharing);
  }
  for (std::int64_t head = 0; head < problem.heads; ++head) {
    const std::int64_t first = head - head % heads;
    if (plan.tiles->list_of(head) == plan.tiles->list_of(first)) continue;
    return fmt::format("heads {} and {} differ in what they see", first, head);
  }
  return std::nullopt;
}

// Whether a pair of tile rows of a list has the same tiles and asks for no words of a block mask,
// which are those of one row.
bool rows_are_alike(const TileList& tiles, std::int64_t which, std::int64_t row) {
  const std::int64_t first = which * tiles.row_tiles + row;
  if (tiles.walk == kernels::Walk::kRuns) {
    return tiles.runs[static_cast<std::size_t>(first)] ==
           tiles.runs[static_cast<std::size_t>(first + 1)];
  }
  const std::int64_t at = which * (tiles.row_tiles + 1) + row;
  const auto begin = [&](std::int64_t i) {
    return tiles.row_begin[static_cast<std::size_t>(at + i)];
  };
  const auto all = std::span(tiles.tiles);
  const auto of = [&](const auto& values, std::int64_t i) {
    return std::span(values).subspan(static_cast<std::size_t>(begin(i)),
                                     static_cast<std::size_t>(begin(i + 1) - begin(i)));
  };
  if (!std::ranges::equal(of(all, 0), of(all, 1))) return false;
  if (tiles.tile_masks.empty()) return true;
  const auto has_words = [](std::int32_t mask) { return mask >= 0; };
  return std::ranges::none_of(of(tiles.tile_masks, 0), has_words) &&
         std::ranges::equal(of(tiles.tile_masks, 0), of(tiles.tile_masks, 1));
}

// Whether tile rows make the same steps in pairs, in the order in which they are taken.
bool rows_are_alike(const LaunchPlan& plan) {
  const TileList& tiles = *plan.tiles;
  if (!plan.q_positions.empty()) return false;
  if (tiles.walk == kernels::Walk::kBand) {
    return plan.mask.text == "true" && !tiles.band.descending;
  }
  for (std::int64_t which = 0; which < tiles.lists; ++which) {
    const auto order = std::span(tiles.row_order)
                           .subspan(static_cast<std::size_t>(which * tiles.row_tiles),
                                    static_cast<std::size_t>(tiles.row_tiles));
    for (std::size_t i = 0; i < order.size(); i += 2) {
      // What comes behind the last row is behind Sq as well.
      const std::int32_t next =
          i + 1 < order.size() ? order[i + 1] : static_cast<std::int32_t>(order.size());
      if (next != order[i] + 1) return false;
      if (i + 1 < order.size() && !rows_are_alike(tiles, which, order[i])) return false;
    }
  }
  return true;
}

// Throws Error{kUnsupported} where heads that the configuration wants together differ.
WorkGroup group_of(const LaunchPlan& plan) {
  const WorkGroup heads = heads_together(plan.config);
  const auto why = why_not_together(plan, heads.heads);
  if (!why) return heads;
  if (plan.config.cluster == 1) {
    base::fail(ErrorCode::kUnsupported, "configuration '{}' computes {} heads in one CTA, but {}",
               to_string(plan.config), heads.heads, *why);
  }
  const WorkGroup rows = rows_together(plan.config);
  if (rows_are_alike(plan) && !why_not_together(plan, rows.heads)) return rows;
  base::fail(ErrorCode::kUnsupported,
             "in configuration '{}' {} heads share copies of K and V, but {}; or neighbouring tile "
             "rows do, in pairs that see the same keys, with positions in one segment",
             to_string(plan.config), heads.heads, *why);
}

}  // namespace

std::int64_t launched_rows(const LaunchPlan& plan) {
  return plan.split.empty() ? plan.tiles->row_tiles : plan.split.segment_count;
}

LaunchPlan make_plan(const Problem& problem, const Choice& choice, const DeviceLimits& limits,
                     const PlanForm& form, TileCache* cache) {
  return make_plan(problem, placement_of(problem), choice, limits, form, cache);
}

LaunchPlan make_plan(Problem problem, const pattern::Placement& placement, const Choice& choice,
                     const DeviceLimits& limits, const PlanForm& form, TileCache* cache) {
  if (!placement.q.empty()) problem.q0 = placement.q.front().start;
  if (!placement.k.empty()) problem.k0 = placement.k.front().start;
  if (placement.context.seq_k >= 0) problem.total_k = placement.context.seq_k;
  problem.layer = placement.context.layer;
  LaunchPlan plan;
  plan.problem = problem;
  plan.placement = placement;
  plan.config = choice.config;
  plan.rejected = choice.rejected;
  plan.mask = pattern::emit(problem.pattern, kernels::kMaskNumbers,
                            {problem.heads, hull_of(placement.q), placement.context});
  plan.score_code = score_code(problem.score.score_mod);
  const auto tile_list = [&](auto&&... arguments) {
    if (form.list != ListForm::kShortest) {
      return std::make_shared<const TileList>(make_tile_list(arguments..., form.list));
    }
    if (cache != nullptr) return cache->get(arguments...);
    return std::make_shared<const TileList>(make_plan_tiles(arguments...));
  };
  plan.tiles = tile_list(problem, placement, plan.config.tile_rows, plan.config.tile_columns,
                         plan.mask.layout.get());
  KernelFeatures features = features_of(problem, placement, plan.mask);
  features.walk = plan.tiles->walk;
  if (features.placed) {
    plan.q_positions = positions_of(placement.q, plan.config.tile_rows);
    plan.k_positions = positions_of(placement.k, plan.config.tile_columns);
  }
  plan.group = group_of(plan);
  SplitChoice split = choose_split(plan, features, limits, form.split_rows);
  plan.split = std::move(split.split);
  features.split = !plan.split.empty();
  plan.launches = split_batches(problem, plan.config, launched_rows(plan));
  plan.spec = kernel_spec(plan.config, features, limits.arch);
  if (features.split) {
    plan.merge_spec = merge_spec(plan.config, features, limits.arch);
    plan.workspace_bytes = plan.split.workspace_bytes(
        plan.tiles->tile_rows, problem.dim_v, problem.heads * plan.launches.front().batches);
  }
  plan.score = score_numbers(problem);
  plan.score_tables = score_tables(problem.score);
  plan.lse_factor =
      problem.lse_base == LseBase::kNatural ? static_cast<float>(std::numbers::ln2) : 1.0f;
  plan.shape =
      launch_shape(plan.config, problem, plan.group, launched_rows(plan), limits.multiprocessors);
  if (plan.config.family == Family::kMma) {
    plan.shape.grid_z = static_cast<unsigned>(std::min(problem.batch, kMostGridZ));
  }
  const ScoreTables& tables = plan.score_tables;
  const std::size_t parts = plan.split.segments.size() + plan.split.merged.size();
  const auto words = 4 * parts + plan.mask.lists.size() + plan.q_positions.size() +
                     plan.k_positions.size() + tables.slopes.size() + tables.bias.size() +
                     tables.sinks.size() + plan.score_code.words.size();
  plan.device_bytes =
      plan.tiles->device_bytes() + static_cast<std::int64_t>(words * sizeof(std::int32_t));
  plan.decisions = describe(plan, choice, limits, split.reason);
  return plan;
}

}  // namespace annulus::attention
