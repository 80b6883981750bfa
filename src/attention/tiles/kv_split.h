#ifndef ANNULUS_ATTENTION_TILES_KV_SPLIT_H_
#define ANNULUS_ATTENTION_TILES_KV_SPLIT_H_

// Long tile rows, split over several CTAs: each part leaves a state in the workspace, and a second
// kernel joins the parts of a row in their order (Dao et al., Flash-Decoding for long-context
// inference, 2023). It pays where the longest rows would keep a few multiprocessors busy while the
// others have nothing left to do: few queries over many keys, or lists with a few long rows.

#include <cstdint>
#include <vector>

#include "attention/tiles/tile_counts.h"
#include "attention/tiles/tile_list.h"
#include "params/attention_params.h"

namespace annulus::attention {

// Empty where every row is one CTA's.
struct KvSplit {
  std::int64_t max_tiles = 0;      // of a part
  std::int64_t segment_count = 0;  // parts and whole rows of the list that has most
  std::int64_t merged_count = 0;   // split rows of the list that has most
  std::int64_t slots = 0;          // states of a (batch, head)
  // Lists that have fewer end with void ones.
  std::vector<kernels::RowSegment> segments;  // [lists, segment_count], longest first
  std::vector<kernels::MergedRow> merged;     // [lists, merged_count]

  bool empty() const { return segments.empty(); }
  // Of `heads` heads of all batches that are computed at a time.
  std::int64_t workspace_bytes(std::int64_t tile_rows, std::int64_t dim_v,
                               std::int64_t heads) const;
};

// Rows of more than max_tiles are split into as few parts of equal length as keep to it; parts are
// multiples of `step` tiles but for the last one. Requires: max_tiles >= step >= 1.
KvSplit kv_splits(const TileList& tiles, std::int64_t max_tiles, std::int64_t step);

// What a cost model has to know of the parts, as count_tiles has it of rows.
TileCounts count_parts(const TileList& tiles, const KvSplit& split, const Problem& problem);

}  // namespace annulus::attention

#endif  // ANNULUS_ATTENTION_TILES_KV_SPLIT_H_
