#include "attention/tiles/tile_grid.h"

#include <algorithm>
#include <iterator>

#include "attention/tiles/tile_band.h"
#include "attention/tiles/visible_keys.h"
#include "base/fail.h"
#include "base/math.h"
#include "base/work.h"
#include "pattern/layout_file.h"
#include "pattern/node.h"

namespace annulus::attention {
namespace {

bool has_blocks(const pattern::Node& node) {
  return pattern::any_leaf(
      node, [](const pattern::leaves::Structure& leaf) { return leaf.layout != nullptr; });
}

// Whether M neighbouring queries together see little more than one of them does. If not, a decode
// of a few queries keeps its own list, because the list of a whole tile of queries would hold many
// more tiles.
bool neighbours_agree(const pattern::Node& node, std::int64_t tile_rows) {
  return !pattern::any_leaf(
      node, [&](const pattern::leaves::Structure& leaf) { return leaf.agreeing_rows < tile_rows; });
}

// The least number of keys of the sequence with which every leaf that depends on this number sees
// the same keys as with `keys`; -1 if no leaf depends on it.
std::int64_t least_keys(const pattern::Node& node, std::int64_t keys) {
  std::int64_t least = -1;
  pattern::each_leaf(node, [&](const pattern::leaves::Leaf& leaf) {
    const std::int64_t block = pattern::leaves::structure_of(leaf).context_block;
    if (block == 0) return;
    least = std::max(least, keys <= 0 ? keys : (keys - 1) / block * block + 1);
  });
  return least;
}

void add_segments(const char* name, const std::vector<Segment>& segments, std::string* text) {
  auto out = std::back_inserter(*text);
  fmt::format_to(out, "\n{}", name);
  for (const Segment& segment : segments) {
    fmt::format_to(out, " {}+{}", segment.start, segment.length);
  }
}

}  // namespace

TileGrid grid_of(const Problem& problem, const pattern::Placement& placement,
                 std::int64_t tile_rows, std::int64_t tile_columns) {
  TileGrid grid = {placement, tile_rows};
  const pattern::Node& node = problem.pattern.node();
  if (placement.q.size() != 1 || placement.k.size() != 1 || has_blocks(node)) return grid;
  if (visible_keys(problem, placement).empty()) return grid;
  // Keys are padded to whole tiles. Queries of more than a tile are padded too. Fewer queries are
  // extended on both sides to multiples of M, so that the list stays the same while a decode
  // advances through a tile.
  Segment& q = grid.placement.q.front();
  Segment& k = grid.placement.k.front();
  k.length = base::round_up(k.length, tile_columns);
  if (q.length > tile_rows) {
    q.length = base::round_up(q.length, tile_rows);
  } else if (q.length > 0 && neighbours_agree(node, tile_rows)) {
    const std::int64_t end = base::round_up(q.start + q.length, tile_rows);
    q.start = base::round_down(q.start, tile_rows);
    q.length = end - q.start;
    grid.rows_together = q.length;
  }
  return grid;
}

TileList make_plan_tiles(const Problem& problem, const pattern::Placement& placement,
                         std::int64_t tile_rows, std::int64_t tile_columns,
                         const BlockLayout* layout) {
  if (layout == nullptr && find_band(problem.pattern, placement, tile_rows, tile_columns)) {
    return make_tile_list(problem, placement, tile_rows, tile_columns, nullptr);
  }
  const TileGrid grid = grid_of(problem, placement, tile_rows, tile_columns);
  TileList list = make_tile_list(problem, grid.placement, grid.rows_together, tile_columns, layout,
                                 ListForm::kInMemory);
  list.tile_rows = tile_rows;
  return list;
}

std::string key_of(const Problem& problem, const TileGrid& grid, std::int64_t tile_rows,
                   std::int64_t tile_columns) {
  const pattern::Node& node = problem.pattern.node();
  const pattern::Placement& placement = grid.placement;
  std::string text = problem.pattern.to_string();
  base::charge(std::ssize(text));
  text += '\n';
  pattern::add_layout_digests(node, &text);
  fmt::format_to(std::back_inserter(text), "\n{} heads, tiles of {} x {}, {} rows together",
                 problem.heads, tile_rows, tile_columns, grid.rows_together);
  if (node.batches > 1) {
    fmt::format_to(std::back_inserter(text), "\n{} batches",
                   problem.pattern.distinct_batches(problem.batch));
  }
  add_segments("q", placement.q, &text);
  add_segments("k", placement.k, &text);
  if (const std::int64_t keys = least_keys(node, placement.context.seq_k); keys >= 0) {
    fmt::format_to(std::back_inserter(text), "\nof {} keys, layer {}", keys,
                   placement.context.layer);
  }
  return text;
}

}  // namespace annulus::attention
