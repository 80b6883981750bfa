#ifndef ANNULUS_ATTENTION_TILES_TILE_LIST_H_
#define ANNULUS_ATTENTION_TILES_TILE_LIST_H_

// The tiles that a kernel with M x N tiles has to compute: for every tile row, the column tiles
// that hold a visible pair, each marked as full or partial. A list is made once, when a problem is
// planned; kernels::TileListParams points to its arrays.
//
// Only irregular rows are listed tile by tile (TileOrder::kList). If every row is one or two runs
// of tiles, there is a record for each row, or for each group of rows that can be computed from
// their numbers (kRuns). If all rows can be computed from their numbers, there is one record for
// all (kBand). All members except the arrays mean the same in the three orders.

#include <cstdint>
#include <iterator>
#include <span>
#include <vector>

#include "annulus/problem.h"
#include "params/tile_order_params.h"
#include "pattern/classify.h"

namespace annulus::attention {

struct TileList {
  std::int64_t tile_rows = 0;     // M
  std::int64_t tile_columns = 0;  // N
  std::int64_t seq_q = 0;
  std::int64_t seq_k = 0;
  std::int64_t lists = 1;         // distinct lists; heads and batches with equal lists share one
  std::int64_t row_tiles = 0;     // ceil(Sq / M)
  std::int64_t column_tiles = 0;  // ceil(Sk / N)

  kernels::TileOrder tile_order = kernels::TileOrder::kList;

  // kList. List L, tile row r: tiles[row_begin[L (row_tiles + 1) + r]] up to row_begin[... + r +
  // 1].
  std::vector<std::int64_t> row_begin;
  std::vector<std::uint32_t> tiles;  // column tile * 2 + partial, ascending in a row
  // kRuns: [lists, row_tiles]; or, if there are groups, their records and steps.
  std::vector<kernels::RowRuns> runs;
  std::vector<kernels::RowGroup> groups;  // kRuns: [lists, group_count], or empty
  std::int64_t group_count = 0;  // the groups of the list with the most; other lists are padded
                                 // with empty ones
  kernels::RowBand band = {};    // kBand; then there is one list
  // [lists, row_tiles], longest row first; empty with kBand and with groups.
  std::vector<std::int32_t> row_order;
  // [batches, H]: the list of each head. Empty: every head has list 0. Batch b has the entries of
  // batch b mod batches.
  std::vector<std::int32_t> head_list;
  std::int64_t batches = 1;

  // If the pattern has blocks(): the visibility of each tile by that leaf alone. A granule is the
  // largest piece of rows x columns, powers of two, that no block edge cuts in any tile. For each
  // tile: the index of its first word in mask_words, -1 if all is visible, or -2 if nothing is.
  // Empty if every tile is all visible.
  std::vector<std::int32_t> tile_masks;
  std::vector<std::uint32_t> mask_words;  // one bit for each granule, row-major, lowest bit first
  int granule_row_shift = 0;
  int granule_column_shift = 0;

  std::int64_t full_tiles = 0;  // tiles of all distinct lists together
  std::int64_t partial_tiles = 0;
  std::int64_t longest_row = 0;  // tiles
  std::int64_t empty_rows = 0;   // tile rows without a tile

  std::int64_t list_of(std::int64_t head, std::int64_t batch = 0) const {
    if (head_list.empty()) return 0;
    const auto heads = std::ssize(head_list) / batches;
    return head_list[static_cast<std::size_t>(batch % batches * heads + head)];
  }
  std::int64_t kept_tiles() const { return full_tiles + partial_tiles; }
  // The number of tiles of a row of a list, and the tiles as ascending runs. All tiles of a run
  // have one class.
  std::int64_t row_length(std::int64_t which, std::int64_t row) const;
  std::vector<pattern::BlockRun> row_runs(std::int64_t which, std::int64_t row) const;
  // The record of a row of a list, and the row at a place of its launch order. Require: kRuns; not
  // kBand.
  kernels::RowRuns record(std::int64_t which, std::int64_t row) const;
  std::int32_t row_at(std::int64_t which, std::int64_t place) const;
  // The groups of a list in launch order. Empty if rows have records of their own.
  std::span<const kernels::RowGroup> groups_of(std::int64_t which) const;

  // Bytes of all arrays on the device.
  std::int64_t device_bytes() const;
};

// Whether two lists are the same in every number, so that one can stand for the other.
bool same_tiles(const TileList& a, const TileList& b);

// The forms of a list that make_tile_list may choose.
enum class ListForm {
  kShortest,  // the shortest form that the pattern allows
  kInMemory,  // as runs or tile by tile, never computed from the lengths
  kRecords,   // like kInMemory, with a record for each row of runs
  kListed,    // tile by tile, whatever the pattern is
};

// The rectangle of positions of a problem, and the same rectangle as a placement in its sequence.
pattern::Extent extent_of(const Problem& problem);
pattern::Placement placement_of(const Problem& problem);

// Makes the list of a problem. The time grows with the number of kept tiles; for runs, it grows
// with the tile rows, or with the groups if there are few; for a band it does not grow with the
// lengths. `layout` is the layout of the pattern's blocks() leaves, or null. Requires:
// validate(problem) passes; M and N are multiples of 16. Throws Error{kInvalidArgument} for a
// per-head layout that does not have H heads, and Error{kUnsupported} if the list or the masks of
// blocks() would have more than 2^29 entries.
TileList make_tile_list(const Problem& problem, std::int64_t tile_rows, std::int64_t tile_columns,
                        const BlockLayout* layout, ListForm form = ListForm::kShortest);

// Like make_tile_list above, for tensors that are shards. The placement has the problem's rows and
// replaces the problem's positions. A tile may hold rows of two segments.
TileList make_tile_list(const Problem& problem, const pattern::Placement& placement,
                        std::int64_t tile_rows, std::int64_t tile_columns,
                        const BlockLayout* layout, ListForm form = ListForm::kShortest);

// The kept tiles of the list divided by all tiles, for all heads of all batches.
Density tile_density(const Problem& problem, const TileList& tiles);
// The kept tiles of one batch divided by all tiles of one batch, for all heads.
Density tile_density(const Problem& problem, const TileList& tiles, std::int64_t batch);

// The kept blocks of R x C divided by all blocks, for all heads of all batches. No list is made.
Density block_density(const Problem& problem, std::int64_t block_rows, std::int64_t block_columns);

}  // namespace annulus::attention

#endif  // ANNULUS_ATTENTION_TILES_TILE_LIST_H_
