#include "attention/plan/group.h"

#include <fmt/core.h>

#include <algorithm>
#include <span>

#include "attention/tiles/pattern_facts.h"

namespace annulus::attention {
namespace {

// Why groups of `heads` neighbouring heads cannot be one work, or nullopt.
std::optional<std::string> why_heads_differ(const Problem& problem, const TileList& tiles,
                                            int heads) {
  if (auto reason = why_not_one_kv_head(problem, heads)) return reason;
  for (std::int64_t batch = 0; batch < tiles.batches; ++batch) {
    for (std::int64_t head = 0; head < problem.heads; ++head) {
      const std::int64_t first = head - head % heads;
      if (tiles.list_of(head, batch) == tiles.list_of(first, batch)) continue;
      return fmt::format("heads {} and {} differ in what they see", first, head);
    }
  }
  return std::nullopt;
}

// Whether tile rows `row` and row + 1 of a list have the same tiles and no words of a block mask.
// Words belong to one row, and the CTAs of a cluster read the entries of the first row only.
bool pair_is_alike(const TileList& tiles, std::int64_t which, std::int64_t row) {
  if (tiles.tile_order == kernels::TileOrder::kRuns) {
    return tiles.record(which, row) == tiles.record(which, row + 1);
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

// Whether tile rows make the same steps in pairs, in the order of launch: rows 2 i and 2 i + 1 of
// that order have to be neighbours, because a cluster takes a row and the next ones.
bool rows_are_alike(const TileList& tiles, const KernelFeatures& features) {
  // A row after the last one would read positions that do not exist.
  if (features.positions == kernels::Positions::kOfRows) return false;
  if (tiles.tile_order == kernels::TileOrder::kBand) {
    return features.mask == "true" && !tiles.band.descending;
  }
  // Whether all pairs from place `begin` on that start before `end` are alike. `begin` is even.
  const auto are_alike = [&](std::int64_t which, std::int64_t begin, std::int64_t end) {
    for (std::int64_t place = begin; place < end; place += 2) {
      // With an odd number of rows the last pair has a row beyond Sq, which must follow the last
      // row.
      const bool whole = place + 1 < tiles.row_tiles;
      const std::int32_t row = tiles.row_at(which, place);
      const std::int64_t next = whole ? tiles.row_at(which, place + 1) : tiles.row_tiles;
      if (next != row + 1) return false;
      if (whole && !pair_is_alike(tiles, which, row)) return false;
    }
    return true;
  };
  for (std::int64_t which = 0; which < tiles.lists; ++which) {
    if (tiles.groups.empty()) {
      if (!are_alike(which, 0, tiles.row_tiles)) return false;
      continue;
    }
    // The rows of a group are linear functions of their numbers, and so are their differences.
    // Differences that are 0 in two periods are 0 in all periods.
    for (const kernels::RowGroup& group : tiles.groups_of(which)) {
      const std::int64_t begin = group.order / 2 * 2, end = std::int64_t{group.order} + group.rows;
      const std::int64_t some = std::min(end, begin + 4 * (std::int64_t{group.period} + 1));
      if (!are_alike(which, begin, some)) return false;
      if (!are_alike(which, std::max(some, end - 2) / 2 * 2, end)) return false;
    }
  }
  return true;
}

}  // namespace

// Heads are tried first. If heads cannot be grouped, a cluster may share its copies among tile
// rows.
Grouping group_of(const KernelConfig& config, const Problem& problem, const TileList& tiles,
                  const KernelFeatures& features) {
  const WorkGroup heads = packed_heads(config);
  const auto why = why_heads_differ(problem, tiles, heads.heads);
  if (!why) return {heads, ""};
  if (cta_shape(config).cluster == 1) {
    return {std::nullopt, fmt::format("configuration '{}' computes {} heads in one CTA, but {}",
                                      to_string(config), heads.heads, *why)};
  }
  const WorkGroup rows = rows_together(config);
  if (rows_are_alike(tiles, features) && !why_heads_differ(problem, tiles, rows.heads)) {
    return {rows, ""};
  }
  return {std::nullopt,
          fmt::format("in configuration '{}' {} heads share copies of K and V, but {}; or "
                      "neighbouring tile rows do, in pairs that see the same keys, with positions "
                      "that need not be read row by row",
                      to_string(config), heads.heads, *why)};
}

}  // namespace annulus::attention
