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
  bool begins;  // whether it holds the row's first tile, whose segment starts from the carried
                // state

  // Makes tile `tiles` the first one.
  __device__ __forceinline__ void skip(int tiles) {
    entries += tiles;
    if (masks) masks += tiles;
  }
  static __device__ __forceinline__ ColumnTile tile_of(unsigned entry) {
    return {static_cast<int>(entry >> 1), (entry & 1) != 0};
  }
  // Requires: 0 <= index < count.
  __device__ __forceinline__ unsigned entry(int index) const { return entries[index]; }
  __device__ __forceinline__ ColumnTile tile(int index) const { return tile_of(entries[index]); }
  // MaskContext::tile_mask of a partial tile.
  __device__ __forceinline__ int mask(int index) const {
    return masks ? masks[index] : static_cast<int>(kTileAllVisible);
  }
};

// A row whose tiles are computed from counts, without a load for each tile. It has no block masks,
// because patterns with blocks() have lists.
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

// A row of any of these kinds, in a general kernel.
template <>
struct TileRow<TileOrder::kAny> {
  const unsigned* entries;  // null if the tiles are computed from counts
  const int* masks;
  kernels::RowRuns runs;
  int count;
  int row;
  int slot;
  bool begins;

  __device__ __forceinline__ void skip(int tiles) {
    if (entries) {
      entries += tiles;
      if (masks) masks += tiles;
    } else {
      runs.skip(tiles);
    }
  }
  static __device__ __forceinline__ ColumnTile tile_of(unsigned entry) {
    return TileRow<TileOrder::kList>::tile_of(entry);
  }
  // The entry of a list, or the entry that a list would have. Requires: 0 <= index < count.
  __device__ __forceinline__ unsigned entry(int index) const {
    if (entries) return entries[index];
    return static_cast<unsigned>(runs.column(index)) * 2 + (runs.partial(index) ? 1u : 0u);
  }
  __device__ __forceinline__ ColumnTile tile(int index) const { return tile_of(entry(index)); }
  __device__ __forceinline__ int mask(int index) const {
    return masks ? masks[index] : static_cast<int>(kTileAllVisible);
  }
};

// The number of batches that see different keys: Shape::kDistinctBatches, or 1 for a Shape without
// it. 0: the launch has the number.
template <typename Shape, typename = void>
struct DistinctBatches {
  enum : int { kCount = 1 };
};
template <typename Shape>
struct DistinctBatches<Shape, Void<decltype(Shape::kDistinctBatches)>> {
  enum : int { kCount = Shape::kDistinctBatches };
};

// The number of a head's list, for a batch of the launch, if no selection made lists.
template <int kDistinctBatches>
__device__ __forceinline__ long long list_of(const kernels::AttentionParams& params, unsigned head,
                                             long long batch) {
  const int* lists = params.tiles.head_list;
  if (lists == nullptr) return 0;
  if constexpr (kDistinctBatches != 1) {
    const unsigned distinct = kDistinctBatches > 0
                                  ? static_cast<unsigned>(kDistinctBatches)
                                  : static_cast<unsigned>(params.tiles.distinct_batches);
    const unsigned in_problem =
        static_cast<unsigned>(params.first_batch) + static_cast<unsigned>(batch);
    lists += static_cast<long long>(in_problem % distinct) * params.heads;
  }
  return lists[head];
}

// Finds the tiles of a row, for each tile order. If `placed` is set, the row is found->row.
// Otherwise it is the row at place `order` in launch order, and found->row is set to it.

// The rows of a band are ordered by length from one end to the other; nothing is read.
template <int kRows, int kColumns, typename Row>
__device__ __forceinline__ kernels::RowRun find_in_band(const kernels::AttentionParams& params,
                                                        unsigned order, bool placed, Row* found) {
  const kernels::TileListParams& tiles = params.tiles;
  const int index = static_cast<int>(order);
  if (!placed) found->row = tiles.band.descending ? tiles.row_tiles - 1 - index : index;
  return kernels::band_row(tiles.band, kRows, kColumns, params.seq_q, params.seq_k, found->row);
}

template <typename Row>
__device__ __forceinline__ void find_in_runs(const kernels::TileListParams& tiles, long long list,
                                             unsigned order, bool placed, Row* found) {
  if (tiles.groups != nullptr) {
    const kernels::RowGroup* group = tiles.groups + list * tiles.group_count;
    if (placed) {
      while (!group->has_row(found->row)) ++group;
    } else {
      while (!group->has_place(static_cast<int>(order))) ++group;
      found->row = group->row_at(static_cast<int>(order));
    }
    found->runs = group->runs_of(tiles.runs, found->row);
  } else {
    if (!placed) found->row = tiles.row_order[list * tiles.row_tiles + order];
    found->runs = tiles.runs[list * tiles.row_tiles + found->row];
  }
  found->count = found->runs.count;
}

template <typename Row>
__device__ __forceinline__ void find_in_list(const kernels::TileListParams& tiles, long long list,
                                             unsigned order, bool placed, Row* found) {
  if (!placed) found->row = tiles.row_order[list * tiles.row_tiles + order];
  const long long* begin = tiles.row_begin + list * (tiles.row_tiles + 1) + found->row;
  const long long first = begin[0];
  found->entries = tiles.tiles + first;
  found->masks = tiles.tile_masks ? tiles.tile_masks + first : nullptr;
  found->count = static_cast<int>(begin[1] - first);
}

template <int kRows, int kColumns>
__device__ __forceinline__ void find_in_any(const kernels::AttentionParams& params, long long list,
                                            unsigned order, bool placed,
                                            TileRow<TileOrder::kAny>* found) {
  found->entries = nullptr;
  found->masks = nullptr;
  if (params.tiles.row_begin != nullptr) {
    find_in_list(params.tiles, list, order, placed, found);
  } else if (params.tiles.runs != nullptr) {
    find_in_runs(params.tiles, list, order, placed, found);
  } else {
    const kernels::RowRun run = find_in_band<kRows, kColumns>(params, order, placed, found);
    found->count = run.count;
    found->runs = {
        run.count, run.count, {run.first, run.first}, {run.full_begin, 0}, {run.full_count, 0}};
  }
}

// The row, or with kSplit the segment of a row, that comes at place `order` in the launch order of
// a head of a batch. The longest rows come first, so that no long row is left for the end. Tiles
// are kRows x kColumns. With kSplit an empty segment has row -1 and count 0, and nothing else of it
// is set; in a general kernel rows are split if the launch has segments.
template <TileOrder kTileOrder, int kRows, int kColumns, bool kSplit = false,
          int kDistinctBatches = 1>
__device__ __forceinline__ TileRow<kTileOrder> find_tile_row(const kernels::AttentionParams& params,
                                                             unsigned order, unsigned head,
                                                             long long batch) {
  const kernels::TileListParams& tiles = params.tiles;
  TileRow<kTileOrder> found;
  kernels::RowSegment segment;
  bool split = kSplit;
  if constexpr (kSplit) {
    if constexpr (kTileOrder == TileOrder::kAny) split = params.split.segments != nullptr;
    if (split) {
      const long long list = list_of<kDistinctBatches>(params, head, batch);
      segment = params.split.segments[list * params.split.segment_count + order];
      found.row = segment.row;
      found.count = 0;
      // Lists with fewer segments than other lists end with empty segments.
      if (found.row < 0) return found;
    }
  }
  if constexpr (kTileOrder == TileOrder::kBand) {
    found.runs = find_in_band<kRows, kColumns>(params, order, split, &found);
    found.count = found.runs.count;
  } else {
    const long long list =
        list_of<kDistinctBatches>(params, head, batch) + batch * tiles.batch_lists;
    if constexpr (kTileOrder == TileOrder::kRuns) {
      find_in_runs(tiles, list, order, split, &found);
    } else if constexpr (kTileOrder == TileOrder::kList) {
      find_in_list(tiles, list, order, split, &found);
    } else {
      find_in_any<kRows, kColumns>(params, list, order, split, &found);
    }
  }
  found.slot = -1;
  found.begins = true;
  if constexpr (kSplit) {
    if (split) {
      found.skip(segment.first);
      found.count = segment.count;
      found.slot = segment.slot;
      found.begins = segment.first == 0;
    }
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
  // The tile `ahead` places after the current one; it has no meaning if the row has no such tile.
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
// entry, and loading the entry takes as long as a tile. Nothing outside of the row is read; entries
// before and after it are 0.
template <typename Row, int kAhead>
class EntryWindow {
 public:
  __device__ __forceinline__ EntryWindow(const Row& row, int current) : row_(row) {
#pragma unroll
    for (int i = 0; i <= kAhead; ++i) entries_[i] = current + i < 0 ? 0 : read(current + i);
  }
  __device__ __forceinline__ ColumnTile tile(int ahead) const {
    return Row::tile_of(entries_[ahead]);
  }
  __device__ __forceinline__ void advance(int current) {
#pragma unroll
    for (int i = 0; i < kAhead; ++i) entries_[i] = entries_[i + 1];
    entries_[kAhead] = read(current + 1 + kAhead);
  }

 private:
  __device__ __forceinline__ unsigned read(int index) const {
    return index < row_.count ? row_.entry(index) : 0;
  }

  const Row& row_;
  unsigned entries_[kAhead + 1];
};

template <int kAhead>
class TileWindow<TileOrder::kList, kAhead> : public EntryWindow<TileRow<TileOrder::kList>, kAhead> {
 public:
  using EntryWindow<TileRow<TileOrder::kList>, kAhead>::EntryWindow;
};
template <int kAhead>
class TileWindow<TileOrder::kAny, kAhead> : public EntryWindow<TileRow<TileOrder::kAny>, kAhead> {
 public:
  using EntryWindow<TileRow<TileOrder::kAny>, kAhead>::EntryWindow;
};

}  // namespace annulus::tile

#endif  // ANNULUS_TILE_TILE_ROW_CUH_
