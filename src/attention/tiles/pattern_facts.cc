#include "attention/tiles/pattern_facts.h"

#include <fmt/core.h>

#include <algorithm>
#include <iterator>
#include <vector>

#include "attention/tiles/tile_list.h"
#include "base/math.h"
#include "pattern/node.h"
#include "pattern/rows_alike.h"

namespace annulus::attention {
namespace {

// Whether neighbouring rows of blocks keep such different blocks that a tile over two rows would
// compute over a third more blocks than one row keeps on average. The function samples pairs of
// rows, evenly spread over the layout.
bool is_scattered(const BlockLayout& layout) {
  constexpr std::int64_t kSamples = 64;
  const std::int64_t pairs = layout.rows() / 2 * layout.heads;
  std::int64_t either = 0;
  std::int64_t both = 0;  // counted twice
  for (std::int64_t i = 0; i < std::min(pairs, kSamples); ++i) {
    const std::int64_t pair = i * pairs / std::min(pairs, kSamples);
    const std::int64_t head = pair / (layout.rows() / 2);
    const std::int64_t row = pair % (layout.rows() / 2) * 2;
    const auto upper = layout.row(head, row);
    const auto lower = layout.row(head, row + 1);
    std::vector<std::int32_t> joined;
    std::ranges::set_union(upper, lower, std::back_inserter(joined));
    either += std::ssize(joined);
    both += std::ssize(upper) + std::ssize(lower);
  }
  return 3 * either > 4 * both / 2;
}

// Whether pairs of tile rows see the same keys. The number of tile rows must be even, unless all
// rows see the same. No block of a layout may end within a tile, because the tile would have mask
// words, which belong to one row.
bool sees_alike(const pattern::Node& node, const Problem& problem, std::int64_t tile_rows,
                std::int64_t tile_columns) {
  using pattern::Kind;
  if (!node.children.empty()) {
    return node.kind != Kind::kSum &&
           std::ranges::all_of(node.children, [&](const pattern::NodePointer& child) {
             return sees_alike(*child, problem, tile_rows, tile_columns);
           });
  }
  const pattern::Extent extent = extent_of(problem);
  const pattern::Interval queries = extent.queries();
  const BlockLayout* layout = pattern::leaves::structure_of(node.leaf).layout;
  if (layout != nullptr &&
      (layout->block_columns % tile_columns != 0 || extent.k_position % tile_columns != 0 ||
       extent.k_position < 0 || extent.keys().end > layout->seq_k)) {
    return false;
  }
  // Either all queries see the same keys, or the queries of each pair of tile rows do.
  return pattern::sees_alike_in_groups(node, queries, std::max<std::int64_t>(1, problem.seq_q)) ||
         (base::ceil_div(problem.seq_q, tile_rows) % 2 == 0 &&
          pattern::sees_alike_in_groups(node, queries, 2 * tile_rows));
}

bool is_band(const pattern::Node& node) {
  using pattern::Kind;
  if (node.kind == Kind::kLeaf) {
    const std::optional<pattern::leaves::KeyBand> band =
        pattern::leaves::structure_of(node.leaf).band;
    return band && band->is_diagonal();
  }
  return node.kind == Kind::kAnd &&
         std::ranges::all_of(node.children, [](const auto& child) { return is_band(*child); });
}

}  // namespace

Blocks finest_blocks(const pattern::Node& node) {
  Blocks blocks;
  pattern::each_leaf(node, [&](const pattern::leaves::Leaf& leaf) {
    const pattern::leaves::Structure structure = pattern::leaves::structure_of(leaf);
    if (!structure.blocks) return;
    blocks.rows = std::min(blocks.rows, structure.blocks->rows);
    blocks.columns = std::min(blocks.columns, structure.blocks->columns);
    blocks.scattered |= structure.blocks->independent ||
                        (structure.layout != nullptr && is_scattered(*structure.layout));
  });
  return blocks;
}

std::optional<std::string> why_not_one_kv_head(const Problem& problem, int heads) {
  if (heads == 1 || problem.heads / problem.kv_heads % heads == 0) return std::nullopt;
  return fmt::format("{} query heads for {} of K and V: {} together would not share one",
                     problem.heads, problem.kv_heads, heads);
}

std::optional<std::string> why_not_together(const Problem& problem, int heads) {
  if (heads == 1) return std::nullopt;
  if (auto reason = why_not_one_kv_head(problem, heads)) return reason;
  if (problem.pattern.heads() != 1 || problem.pattern.node().period != 1) {
    return "heads differ in what they see, and those that work together may not";
  }
  return std::nullopt;
}

bool rows_are_alike(const Problem& problem, std::int64_t tile_rows, std::int64_t tile_columns,
                    kernels::Positions positions) {
  const Score& score = problem.score;
  const pattern::Node& node = problem.pattern.node();
  const bool placed = positions != kernels::Positions::kOneSegment;
  if (placed && (problem.pattern != dense() || !score.alibi.empty() || !score.bias.empty() ||
                 score.score_mod)) {
    return false;
  }
  return sees_alike(node, problem, tile_rows, tile_columns);
}

bool is_plain(const Problem& problem, kernels::Positions positions) {
  const Score& score = problem.score;
  return is_band(problem.pattern.node()) && positions != kernels::Positions::kOfRows &&
         score.softcap == 0 && score.alibi.empty() && score.bias.empty() && !score.score_mod;
}

}  // namespace annulus::attention
