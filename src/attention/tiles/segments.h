#ifndef ANNULUS_ATTENTION_TILES_SEGMENTS_H_
#define ANNULUS_ATTENTION_TILES_SEGMENTS_H_

// Tensors whose rows are several segments of the sequence, such as the shards of a zigzag ring. The
// segments decide how kernels find positions (kernels::Positions), and kernels get parameters of a
// second segment. Tiles may start anew with the second segment, so that each tile lies in one
// segment, and its positions follow from its first position. With more segments, or with segments
// shorter than a tile, a tile has rows of several segments, and kernels read the position of each
// row.

#include <cstdint>
#include <limits>

#include "params/attention_params.h"
#include "pattern/classify.h"

namespace annulus::attention {

// A summary of the segments of one launch, or of all launches of a ring.
struct Segments {
  std::int64_t most = 1;  // the most segments of a tensor
  // The rows of the shortest segment of all tensors with several segments.
  std::int64_t shortest_q = std::numeric_limits<std::int64_t>::max();
  std::int64_t shortest_k = std::numeric_limits<std::int64_t>::max();
  // The greatest common divisor of the row numbers at which segments of Q begin, without the first
  // segment; 0 if there are no others.
  std::int64_t q_edges = 0;

  void add_q(const std::vector<Segment>& segments);
  void add_k(const std::vector<Segment>& segments);
};
Segments segments_of(const pattern::Placement& placement);

// The placement with each segment extended to whole tiles, so that the blocks of a classifier are
// the tiles of Positions::kTwoSegments.
pattern::Placement in_whole_tiles(const pattern::Placement& placement, std::int64_t tile_rows,
                                  std::int64_t tile_columns);

// The parameters that a kernel gets for the second segment of a tensor whose tiles have `tile`
// rows. Requires: one or two segments.
kernels::SecondSegment second_segment(const std::vector<Segment>& segments, std::int64_t tile);

}  // namespace annulus::attention

#endif  // ANNULUS_ATTENTION_TILES_SEGMENTS_H_
