#ifndef ANNULUS_ATTENTION_TILES_TILE_GRID_H_
#define ANNULUS_ATTENTION_TILES_TILE_GRID_H_

// Which lengths share a tile list. A list in memory is made for whole tiles, as if the last tiles
// of queries and of keys were full. So all lengths with the same number of tiles share one list,
// and a decode that adds one token at a time keeps its list until a tile is full. The kernel masks
// keys that do not exist, as it does in any last tile. Such a list may hold a tile that is not
// needed, and may mark a tile as partial although all its existing pairs are visible.

#include <cstdint>
#include <string>

#include "attention/tiles/tile_list.h"

namespace annulus::attention {

struct TileGrid {
  // The placement extended to whole tiles. If the tensors are several segments, if the pattern has
  // blocks(), whose layout has lengths of its own, or if no row sees a key, it is the problem's own
  // placement.
  pattern::Placement placement;
  // The rows that one tile row of the list covers: M. If there are fewer queries than a tile has,
  // which need not begin at a multiple of M, it is the number of rows from a multiple of M on that
  // hold all queries.
  std::int64_t rows_together = 0;
};

// Has the requirements of make_tile_list.
TileGrid grid_of(const Problem& problem, const pattern::Placement& placement,
                 std::int64_t tile_rows, std::int64_t tile_columns);

// The list that plans use: a band, computed from the lengths, if that is possible, else the list of
// the grid. Takes as long as make_tile_list, and throws the same errors.
TileList make_plan_tiles(const Problem& problem, const pattern::Placement& placement,
                         std::int64_t tile_rows, std::int64_t tile_columns,
                         const BlockLayout* layout);

// A text with everything that determines the list of a grid: the pattern with its layouts by
// content, the heads, the tile, the grid, how many batches differ, and, if the pattern has random
// leaves, the layer and the number of blocks to choose from. Equal lists may have several keys;
// different lists never share one.
std::string key_of(const Problem& problem, const TileGrid& grid, std::int64_t tile_rows,
                   std::int64_t tile_columns);

}  // namespace annulus::attention

#endif  // ANNULUS_ATTENTION_TILES_TILE_GRID_H_
