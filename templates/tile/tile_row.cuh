#ifndef ANNULUS_TILE_TILE_ROW_CUH_
#define ANNULUS_TILE_TILE_ROW_CUH_

// The column tiles that one CTA visits: a row of a TileList.

#include "kernels/attention_params.h"

namespace annulus::tile {

struct TileRow {
  const unsigned* entries;  // column tile * 2 + partial, ascending
  const int* masks;         // index of each tile's mask words; null without block masks
  int count;
  int row;  // the tile row: query rows from row * M on
};

// The row that CTA `order` of a head of a batch takes: lists start with their longest rows, so that
// no long row is left for the end.
__device__ __forceinline__ TileRow find_tile_row(const kernels::TileListParams& tiles,
                                                 unsigned order, unsigned head, long long batch) {
  const long long list = (tiles.head_list ? tiles.head_list[head] : 0) + batch * tiles.batch_lists;
  const int row = tiles.row_order[list * tiles.row_tiles + order];
  const long long* begin = tiles.row_begin + list * (tiles.row_tiles + 1) + row;
  const long long first = begin[0];
  return {tiles.tiles + first, tiles.tile_masks ? tiles.tile_masks + first : nullptr,
          static_cast<int>(begin[1] - first), row};
}

// The entries of the current tile and of kAhead after it, read that far in advance because an entry
// decides an address and its own load takes as long as a tile. Nothing outside the row is read.
template <int kAhead>
class TileWindow {
 public:
  // `current` may be negative: the tile that many turns before the first.
  __device__ __forceinline__ TileWindow(const TileRow& row, int current) : row_(row) {
#pragma unroll
    for (int i = 0; i <= kAhead; ++i) entries_[i] = current + i < 0 ? 0 : read(current + i);
  }
  // The entry `ahead` tiles after the current one; 0 where there is none.
  __device__ __forceinline__ unsigned entry(int ahead) const { return entries_[ahead]; }
  // Moves on from tile `current` to the next.
  __device__ __forceinline__ void advance(int current) {
#pragma unroll
    for (int i = 0; i < kAhead; ++i) entries_[i] = entries_[i + 1];
    entries_[kAhead] = read(current + 1 + kAhead);
  }

 private:
  __device__ __forceinline__ unsigned read(int index) const {
    return index < row_.count ? row_.entries[index] : 0;
  }

  const TileRow& row_;
  unsigned entries_[kAhead + 1];
};

}  // namespace annulus::tile

#endif  // ANNULUS_TILE_TILE_ROW_CUH_
