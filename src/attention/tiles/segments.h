#ifndef ANNULUS_ATTENTION_TILES_SEGMENTS_H_
#define ANNULUS_ATTENTION_TILES_SEGMENTS_H_

// Tensors whose rows are several segments of the sequence, as the shards of a zigzag ring are: what
// decides how kernels learn positions (kernels::Positions), and what they are told of a second
// segment. Tiles may begin anew with the second segment, so that each lies in one segment and its
// positions follow from its first. With more segments, or with segments shorter than a tile, tiles
// have rows of several, and kernels read the position of each row.

#include <cstdint>
#include <limits>

#include "params/attention_params.h"
#include "pattern/classify.h"

namespace annulus::attention {

// What is known of the segments of one launch, or of all launches of a ring.
struct Segments {
  std::int64_t most = 1;  // of a tensor
  // The rows of the shortest segment among those of tensors with several.
  std::int64_t shortest_q = std::numeric_limits<std::int64_t>::max();
  std::int64_t shortest_k = std::numeric_limits<std::int64_t>::max();
  // The greatest common divisor of the numbers of the rows at which segments of Q but the first
  // begin; 0 if there are none.
  std::int64_t q_edges = 0;

  void add_q(const std::vector<Segment>& segments);
  void add_k(const std::vector<Segment>& segments);
};
Segments segments_of(const pattern::Placement& placement);

// The placement with each segment extended to whole tiles, so that a classifier's blocks are the
// tiles of Positions::kTwoSegments.
pattern::Placement in_whole_tiles(const pattern::Placement& placement, std::int64_t tile_rows,
                                  std::int64_t tile_columns);

// What a kernel is told of the second segment of a tensor that is cut into tiles of `tile` rows.
// Requires: one or two segments.
kernels::SecondSegment second_segment(const std::vector<Segment>& segments, std::int64_t tile);

}  // namespace annulus::attention

#endif  // ANNULUS_ATTENTION_TILES_SEGMENTS_H_
