#ifndef ANNULUS_TILE_TILE_ROW_CUH_
#define ANNULUS_TILE_TILE_ROW_CUH_

// The column tiles that one CTA visits: a row of a TileList or a part of one, in each of the three
// tile orders (params/tile_order_params.h).

#include "params/attention_params.h"
#include "tile/mask.cuh"

namespace annulus::tile {

using kernels::TileOrder;

struct ColumnTile {
  int column;
  bool partial;
};

template <TileOrder kTileOrder>
struct TileRow;

template <>
struct TileRow<TileOrder::kList> {
  const unsigned* entries;  // column tile * 2 + partial, ascending
  const int* masks;         // index of each tile's mask words; null without block masks
  int count;
  int row;      // the tile row: query rows from row * M on
  int slot;     // RowSegment::slot
  bool begins;  // whether it holds the row's first tile, which a carried state goes with

  // Makes tile `tiles` the first one.
  __device__ __forceinline__ void skip(int tiles) {
    entries += tiles;
    if (masks) masks += tiles;
  }
  static __device__ __forceinline__ ColumnTile tile_of(unsigned entry) {
    return {static_cast<int>(entry >> 1), (entry & 1) != 0};
  }
  // Requires: 0 <= index < count.
  __device__ __forceinline__ ColumnTile tile(int index) const { return tile_of(entries[index]); }
  // MaskContext::tile_mask of a partial tile.
  __device__ __forceinline__ int mask(int index) const {
    return masks ? masks[index] : static_cast<int>(kTileAllVisible);
  }
};

// A row whose tiles follow from counts by arithmetic, without a load for each. It has no block
// masks: patterns with blocks() are lists.
template <typename Runs>
struct CountedRow {
  Runs runs;
  int count;
  int row;
  int slot;
  bool begins;

  __device__ __forceinline__ void skip(int tiles) { runs.skip(tiles); }
  __device__ __forceinline__ ColumnTile tile(int index) const {
    return {runs.column(index), runs.partial(index)};
  }
  __device__ __forceinline__ int mask(int) const { return kTileAllVisible; }
};

template <>
struct TileRow<TileOrder::kRuns> : CountedRow<kernels::RowRuns> {};
template <>
struct TileRow<TileOrder::kBand> : CountedRow<kernels::RowRun> {};

template <typename>
using Void = void;

// How many batches differ in what they see: Shape::kDistinctBatches, or 1 of a Shape without it.
template <typename Shape, typename = void>
struct DistinctBatches {
  enum : int { kCount = 1 };
};
template <typename Shape>
struct DistinctBatches<Shape, Void<decltype(Shape::kDistinctBatches)>> {
  enum : int { kCount = Shape::kDistinctBatches };
};

// Which list a head of a batch of the launch has, where no selection made one for each.
template <int kDistinctBatches>
__device__ __forceinline__ long long list_of(const kernels::AttentionParams& params, unsigned head,
                                             long long batch) {
  const int* lists = params.tiles.head_list;
  if (lists == nullptr) return 0;
  if constexpr (kDistinctBatches > 1) {
    const unsigned in_problem =
        static_cast<unsigned>(params.first_batch) + static_cast<unsigned>(batch);
    lists += static_cast<long long>(in_problem % kDistinctBatches) * params.heads;
  }
  return lists[head];
}

// The row, or with kSplit the segment of a row, that comes at place `order` in the launch order of
// a head of a batch. The longest come first, so that no long row is left for the end. Tiles are
// kRows x kColumns. With kSplit an empty segment has row -1 and count 0, and nothing else of it is
// set.
template <TileOrder kTileOrder, int kRows, int kColumns, bool kSplit = false,
          int kDistinctBatches = 1>
__device__ __forceinline__ TileRow<kTileOrder> find_tile_row(const kernels::AttentionParams& params,
                                                             unsigned order, unsigned head,
                                                             long long batch) {
  const kernels::TileListParams& tiles = params.tiles;
  TileRow<kTileOrder> found;
  kernels::RowSegment segment;
  if constexpr (kSplit) {
    const long long list = list_of<kDistinctBatches>(params, head, batch);
    segment = params.split.segments[list * params.split.segment_count + order];
    found.row = segment.row;
    found.count = 0;
    // Lists with fewer segments than others end with empty ones.
    if (found.row < 0) return found;
  }
  if constexpr (kTileOrder == TileOrder::kBand) {
    // The rows of a band are ordered by length from one end to the other; nothing is read.
    const int index = static_cast<int>(order);
    if constexpr (!kSplit) {
      found.row = tiles.band.descending ? tiles.row_tiles - 1 - index : index;
    }
    found.runs =
        kernels::band_row(tiles.band, kRows, kColumns, params.seq_q, params.seq_k, found.row);
    found.count = found.runs.count;
  } else {
    const long long list =
        list_of<kDistinctBatches>(params, head, batch) + batch * tiles.batch_lists;
    if constexpr (kTileOrder == TileOrder::kRuns) {
      if (tiles.groups != nullptr) {
        const kernels::RowGroup* group = tiles.groups + list * tiles.group_count;
        if constexpr (kSplit) {
          while (!group->has_row(found.row)) ++group;
        } else {
          while (!group->has_place(static_cast<int>(order))) ++group;
          found.row = group->row_at(static_cast<int>(order));
        }
        found.runs = group->runs_of(tiles.runs, found.row);
      } else {
        if constexpr (!kSplit) found.row = tiles.row_order[list * tiles.row_tiles + order];
        found.runs = tiles.runs[list * tiles.row_tiles + found.row];
      }
      found.count = found.runs.count;
    } else {
      if constexpr (!kSplit) found.row = tiles.row_order[list * tiles.row_tiles + order];
      const long long* begin = tiles.row_begin + list * (tiles.row_tiles + 1) + found.row;
      const long long first = begin[0];
      found.entries = tiles.tiles + first;
      found.masks = tiles.tile_masks ? tiles.tile_masks + first : nullptr;
      found.count = static_cast<int>(begin[1] - first);
    }
  }
  found.slot = -1;
  found.begins = true;
  if constexpr (kSplit) {
    found.skip(segment.first);
    found.count = segment.count;
    found.slot = segment.slot;
    found.begins = segment.first == 0;
  }
  return found;
}

// The current tile of a row and the kAhead tiles after it.
template <TileOrder kTileOrder, int kAhead>
class TileWindow {
 public:
  // `current` may be negative, for turns before the first tile.
  __device__ __forceinline__ TileWindow(const TileRow<kTileOrder>& row, int current)
      : row_(row), current_(current) {}
  // The tile `ahead` places after the current one; without meaning if the row has none there.
  __device__ __forceinline__ ColumnTile tile(int ahead) const {
    return row_.tile(current_ + ahead);
  }
  // Moves on from tile `current` to the next.
  __device__ __forceinline__ void advance(int current) { current_ = current + 1; }

 private:
  const TileRow<kTileOrder>& row_;
  int current_;
};

// Entries of a list are read kAhead tiles in advance, because the address of a copy depends on its
// entry, and loading the entry takes as long as a tile. Nothing outside the row is read; entries
// before and after it are 0.
template <int kAhead>
class TileWindow<TileOrder::kList, kAhead> {
 public:
  __device__ __forceinline__ TileWindow(const TileRow<TileOrder::kList>& row, int current)
      : row_(row) {
#pragma unroll
    for (int i = 0; i <= kAhead; ++i) entries_[i] = current + i < 0 ? 0 : read(current + i);
  }
  __device__ __forceinline__ ColumnTile tile(int ahead) const {
    return TileRow<TileOrder::kList>::tile_of(entries_[ahead]);
  }
  __device__ __forceinline__ void advance(int current) {
#pragma unroll
    for (int i = 0; i < kAhead; ++i) entries_[i] = entries_[i + 1];
    entries_[kAhead] = read(current + 1 + kAhead);
  }

 private:
  __device__ __forceinline__ unsigned read(int index) const {
    return index < row_.count ? row_.entries[index] : 0;
  }

  const TileRow<TileOrder::kList>& row_;
  unsigned entries_[kAhead + 1];
};

}  // namespace annulus::tile

#endif  // ANNULUS_TILE_TILE_ROW_CUH_
