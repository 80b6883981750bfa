#ifndef ANNULUS_ATTENTION_TILES_TILE_LIST_H_
#define ANNULUS_ATTENTION_TILES_TILE_LIST_H_

// What a kernel with M x N tiles has to compute: for every tile row the column tiles that hold a
// visible pair, and which of them are only partly visible. Made once, when a problem is planned;
// the arrays are those of kernels::TileListParams.
//
// Only irregular rows are listed tile by tile. Where every row is one run of tiles or two, a record
// of each says so (TileOrder::kRuns); where a row follows from its number, nothing does
// (TileOrder::kBand). Everything here but the arrays means the same for all three.

#include <cstdint>
#include <iterator>
#include <vector>

#include "annulus/attention.h"
#include "params/tile_order_params.h"
#include "pattern/classify.h"

namespace annulus::attention {

struct TileList {
  std::int64_t tile_rows = 0;     // M
  std::int64_t tile_columns = 0;  // N
  std::int64_t seq_q = 0;
  std::int64_t seq_k = 0;
  std::int64_t lists = 1;         // distinct lists; heads and batches with equal ones share
  std::int64_t row_tiles = 0;     // ceil(Sq / M)
  std::int64_t column_tiles = 0;  // ceil(Sk / N)

  kernels::TileOrder tile_order = kernels::TileOrder::kList;

  // kList. List L, tile row r: tiles[row_begin[L (row_tiles + 1) + r]] up to row_begin[... + r +
  // 1].
  std::vector<std::int64_t> row_begin;
  std::vector<std::uint32_t> tiles;     // column tile * 2 + partial, ascending in a row
  std::vector<kernels::RowRuns> runs;   // kRuns: [lists, row_tiles]
  kernels::RowBand band = {};           // kBand; there is one list
  std::vector<std::int32_t> row_order;  // [lists, row_tiles], longest row first; not kBand
  // [batches, H]: which list each head has; empty: list 0 for every one. Batch b has the entries of
  // batch b mod batches.
  std::vector<std::int32_t> head_list;
  std::int64_t batches = 1;

  // Where the pattern has blocks(): what that leaf alone says about each tile. A granule is the
  // largest piece of rows x columns, powers of two, that no block edge cuts in any tile.
  std::vector<std::int32_t> tile_masks;   // per tile: first word in mask_words, -1 all, -2 none
  std::vector<std::uint32_t> mask_words;  // bits by granule, row-major, lowest first
  int granule_row_shift = 0;
  int granule_column_shift = 0;

  std::int64_t full_tiles = 0;  // of all distinct lists
  std::int64_t partial_tiles = 0;
  std::int64_t longest_row = 0;  // tiles
  std::int64_t empty_rows = 0;   // tile rows without a tile

  std::int64_t list_of(std::int64_t head, std::int64_t batch = 0) const {
    if (head_list.empty()) return 0;
    const auto heads = std::ssize(head_list) / batches;
    return head_list[static_cast<std::size_t>(batch % batches * heads + head)];
  }
  std::int64_t kept_tiles() const { return full_tiles + partial_tiles; }
  // How many tiles a row of a list has, and which: runs of tiles of one class, ascending.
  std::int64_t row_length(std::int64_t which, std::int64_t row) const;
  std::vector<pattern::BlockRun> row_runs(std::int64_t which, std::int64_t row) const;

  // Bytes of all arrays on the device.
  std::int64_t device_bytes() const;
};

// How make_tile_list may say what a row has.
enum class ListForm {
  kShortest,  // as the pattern allows
  kInMemory,  // as runs or tile by tile, not computed from the lengths
  kListed,    // tile by tile, whatever the pattern
};

// The rectangle of positions that a problem is, and the same as a placement in its sequence.
pattern::Extent extent_of(const Problem& problem);
pattern::Placement placement_of(const Problem& problem);

// Costs by the tiles kept, of runs by the tile rows, and of a band nothing that grows with the
// lengths. `layout` is that of the pattern's blocks() leaves, null without.
// Requires: validate(problem) passes; M and N are multiples of 16. Throws
// Error{kInvalidArgument} for a per-head layout that has not H heads, and Error{kUnsupported} where
// the list or the masks of blocks() would have more than 2^29 entries.
TileList make_tile_list(const Problem& problem, std::int64_t tile_rows, std::int64_t tile_columns,
                        const BlockLayout* layout, ListForm form = ListForm::kShortest);

// The same for tensors that are shards: Sq and Sk of the problem are the rows of the placement, and
// its positions are not looked at. A tile may lie over the edge of two segments.
TileList make_tile_list(const Problem& problem, const pattern::Placement& placement,
                        std::int64_t tile_rows, std::int64_t tile_columns,
                        const BlockLayout* layout, ListForm form = ListForm::kShortest);

// Tiles of the list over all tiles, of all heads of all batches.
Density tile_density(const Problem& problem, const TileList& tiles);
// The same of one batch.
Density tile_density(const Problem& problem, const TileList& tiles, std::int64_t batch);

// Kept blocks of R x C over all blocks, of all heads of all batches. Materialises nothing.
Density block_density(const Problem& problem, std::int64_t block_rows, std::int64_t block_columns);

}  // namespace annulus::attention

#endif  // ANNULUS_ATTENTION_TILES_TILE_LIST_H_
