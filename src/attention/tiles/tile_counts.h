#ifndef ANNULUS_ATTENTION_TILES_TILE_COUNTS_H_
#define ANNULUS_ATTENTION_TILES_TILE_COUNTS_H_

// The number of tiles of each row of a problem for M x N, without the tiles themselves. A cost
// model needs no more of a TileList. The time grows with the intervals of visible keys, not with
// the tiles.

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "attention/tiles/tile_list.h"

namespace annulus::attention {

// The lengths of a band's rows are listed for at most this many CTAs. With more, the pipe model
// uses sums only (makespan in attention/cost/pipe_model.cc).
constexpr std::int64_t kMaxNamedRows = std::int64_t{1} << 18;

struct TileCounts {
  std::int64_t tile_rows = 0;     // M
  std::int64_t tile_columns = 0;  // N
  std::int64_t row_tiles = 0;     // ceil(Sq / M)
  std::int64_t seq_k = 0;         // keys of the problem
  std::int64_t heads_per_kv = 1;  // H / Hkv
  // [distinct heads of distinct batches, row_tiles]: tiles of each row. Each row is launched
  // `copies` times. The vector may be empty if there are more than kMaxNamedRows CTAs, and in
  // estimates, so readers must not depend on it.
  std::vector<std::int32_t> lengths;
  std::int64_t copies = 0;  // B H divided by the number of listed heads

  // Totals over everything that is launched.
  std::int64_t ctas = 0;
  std::int64_t full_tiles = 0;
  std::int64_t partial_tiles = 0;
  std::int64_t longest_row = 0;

  std::int64_t tiles() const { return full_tiles + partial_tiles; }
};

// The heads of the batches that are counted. Each one stands for `copies` heads. If each distinct
// head of each distinct batch is launched equally often, only these are counted, else all heads
// are.
struct CountedHeads {
  CountedHeads(const Problem& problem, std::int64_t distinct_batches, std::int64_t distinct_heads);

  std::int64_t batches = 0;
  std::int64_t heads = 0;
  std::int64_t copies = 0;
};
CountedHeads counted_heads(const Problem& problem, const TileList& list);

// A TileCounts without tiles yet, with the size of the tiles and the problem's keys and heads.
TileCounts counts_of(const Problem& problem, std::int64_t tile_rows, std::int64_t tile_columns);

// Has the requirements and errors of make_tile_list, but no limit on the number of tiles.
TileCounts count_tiles(const Problem& problem, std::int64_t tile_rows, std::int64_t tile_columns);

// Counts like count_tiles(), but returns nullopt if stopped(), which is called from time to time,
// returns true before the end.
std::optional<TileCounts> count_tiles(const Problem& problem, std::int64_t tile_rows,
                                      std::int64_t tile_columns,
                                      const std::function<bool()>& stopped);

// An estimate of count_tiles(), in a time that does not grow with the problem, for a choice between
// sizes of tiles. The totals of a band are exact. Otherwise they are extrapolated from some rows of
// some planes, which are drawn with a fixed seed. If a row takes long to count, all its tiles count
// as kept. The lengths of rows are listed only if that takes little time. Throws as count_tiles.
TileCounts estimate_tiles(const Problem& problem, std::int64_t tile_rows,
                          std::int64_t tile_columns);

// Counts the tiles of a list.
TileCounts count_tiles(const TileList& list, const Problem& problem);

}  // namespace annulus::attention

#endif  // ANNULUS_ATTENTION_TILES_TILE_COUNTS_H_
