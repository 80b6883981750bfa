#ifndef ANNULUS_ATTENTION_TILES_TILE_COUNTS_H_
#define ANNULUS_ATTENTION_TILES_TILE_COUNTS_H_

// How many tiles a problem has for M x N, row by row, without naming them: what a cost model needs
// of a TileList, at the cost of the intervals and not of the tiles.

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "attention/tiles/tile_list.h"

namespace annulus::attention {

// Rows of a band are named for so many CTAs at most; beyond, a model looks at sums alone.
constexpr std::int64_t kMaxNamedRows = std::int64_t{1} << 18;

struct TileCounts {
  std::int64_t tile_rows = 0;     // M
  std::int64_t tile_columns = 0;  // N
  std::int64_t row_tiles = 0;     // ceil(Sq / M)
  // [distinct heads of distinct batches, row_tiles]: tiles of each row. Each of them is launched
  // `copies` times. May be empty where there are more than kMaxNamedRows CTAs.
  std::vector<std::int32_t> lengths;
  std::int64_t copies = 0;  // B H over their number

  // Over everything that is launched.
  std::int64_t ctas = 0;
  std::int64_t full_tiles = 0;
  std::int64_t partial_tiles = 0;
  std::int64_t longest_row = 0;

  std::int64_t tiles() const { return full_tiles + partial_tiles; }
};

// The heads of the batches that are counted, each of which stands for `copies`: those that differ
// where as many of each are launched, else all.
struct CountedHeads {
  CountedHeads(const Problem& problem, std::int64_t distinct_batches, std::int64_t distinct_heads);

  std::int64_t batches = 0;
  std::int64_t heads = 0;
  std::int64_t copies = 0;
};
CountedHeads counted_heads(const Problem& problem, const TileList& list);

// Requires and throws as make_tile_list, without its limit on the number of tiles.
TileCounts count_tiles(const Problem& problem, std::int64_t tile_rows, std::int64_t tile_columns);

// The same; nothing where stopped(), which is asked now and then, turned true meanwhile.
std::optional<TileCounts> count_tiles(const Problem& problem, std::int64_t tile_rows,
                                      std::int64_t tile_columns,
                                      const std::function<bool()>& stopped);

// The same from a list.
TileCounts count_tiles(const TileList& list, const Problem& problem);

}  // namespace annulus::attention

#endif  // ANNULUS_ATTENTION_TILES_TILE_COUNTS_H_
