#ifndef ANNULUS_ATTENTION_TILES_TILE_GRID_H_
#define ANNULUS_ATTENTION_TILES_TILE_GRID_H_

// Which lengths share a tile list. A list in memory is made for whole tiles: of the queries and
// keys that a problem has and of those that would fill its last tiles. So all lengths that fill the
// same tiles have the same list, and a decode that grows by a token keeps its list until a tile is
// full. What does not exist is masked by the kernel, as tails are anyway; a list may name a tile
// more than it must, and call a tile partial that is full as far as it exists.

#include <cstdint>
#include <string>

#include "attention/tiles/tile_list.h"

namespace annulus::attention {

struct TileGrid {
  // Of whole tiles. Where the tensors are several segments, or the pattern has blocks(), which
  // knows its own lengths, it is the placement of the problem.
  pattern::Placement placement;
  // Rows that stand for one tile row of the list: M, or for queries fewer than a tile, which need
  // not begin at a multiple of M, as many as hold them.
  std::int64_t rows_together = 0;
};

// Requires: as make_tile_list.
TileGrid grid_of(const Problem& problem, const pattern::Placement& placement,
                 std::int64_t tile_rows, std::int64_t tile_columns);

// The list that plans use: computed from the lengths where that is possible, else that of the grid.
// Costs and throws as make_tile_list.
TileList make_plan_tiles(const Problem& problem, const pattern::Placement& placement,
                         std::int64_t tile_rows, std::int64_t tile_columns,
                         const BlockLayout* layout);

// All that the list of a grid depends on, as text: the pattern with its layouts by content, the
// heads, the tile, the grid, where batches differ how many do, and where something is chosen at
// random the layer and how many blocks there are to choose from. Equal lists may have several keys,
// different ones never share one.
std::string key_of(const Problem& problem, const TileGrid& grid, std::int64_t tile_rows,
                   std::int64_t tile_columns);

}  // namespace annulus::attention

#endif  // ANNULUS_ATTENTION_TILES_TILE_GRID_H_
