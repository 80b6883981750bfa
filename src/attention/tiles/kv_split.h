#ifndef ANNULUS_ATTENTION_TILES_KV_SPLIT_H_
#define ANNULUS_ATTENTION_TILES_KV_SPLIT_H_

// Split-KV: long tile rows are split over several CTAs. Each part writes a state to the workspace,
// and a second kernel joins the parts of a row in their order (Dao et al., Flash-Decoding for
// long-context inference, 2023). It pays if the longest rows would keep a few multiprocessors busy
// while the others are idle: with few queries over many keys, or lists with a few long rows.

#include <cstdint>
#include <vector>

#include "attention/tiles/tile_counts.h"
#include "attention/tiles/tile_list.h"
#include "params/attention_params.h"

namespace annulus::attention {

// The split of the rows of a list. It is empty if no row is split.
struct KvSplit {
  std::int64_t max_tiles = 0;      // the most tiles of a part
  std::int64_t segment_count = 0;  // parts and whole rows of the list with the most of them
  std::int64_t merged_count = 0;   // split rows of the list with the most of them
  std::int64_t slots = 0;          // states of a (batch, head)
  // Lists that have fewer entries are padded with empty ones (row -1, or no slots).
  std::vector<kernels::RowSegment> segments;  // [lists, segment_count], longest first
  std::vector<kernels::MergedRow> merged;     // [lists, merged_count]

  bool empty() const { return segments.empty(); }
  // Bytes of the states of `heads` heads, counted over all batches of a launch.
  std::int64_t workspace_bytes(std::int64_t tile_rows, std::int64_t dim_v,
                               std::int64_t heads) const;
};

// Splits rows of more than max_tiles tiles into as few parts of nearly equal length as possible
// within that limit. Parts are multiples of `step` tiles, except the last part of a row. Requires:
// max_tiles >= step >= 1.
KvSplit kv_splits(const TileList& tiles, std::int64_t max_tiles, std::int64_t step);

// The counts for a cost model. Parts take the place of rows; count_tiles() returns the same for
// whole rows.
TileCounts count_parts(const TileList& tiles, const KvSplit& split, const Problem& problem);

}  // namespace annulus::attention

#endif  // ANNULUS_ATTENTION_TILES_KV_SPLIT_H_
