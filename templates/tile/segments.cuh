#ifndef ANNULUS_TILE_SEGMENTS_CUH_
#define ANNULUS_TILE_SEGMENTS_CUH_

// The place of a tile in a tensor whose rows are one or two segments of the sequence.

#include "params/attention_params.h"

namespace annulus::tile {

using kernels::Positions;

// Rows [first, end) of the tensor are the rows of the tile and the rows after it in its segment.
// Their positions follow from the position of row `first`. If positions are read row by row
// (Positions::kOfRows), `position` has no meaning.
struct TilePlace {
  int first;
  int end;
  int position;
};

// The place of tile `tile` of kRows rows in a tensor of `rows` rows whose row 0 is at `position`.
// With two segments no tile has rows of both: the first tile of the second segment begins at its
// first row.
template <Positions kPositions, int kRows>
__device__ __forceinline__ TilePlace place_of_tile(int tile, int rows, int position,
                                                   const kernels::SecondSegment& second) {
  TilePlace place = {tile * kRows, rows, position + tile * kRows};
  if constexpr (kPositions == Positions::kTwoSegments) {
    if (tile < second.tile) {
      place.end = second.first;
    } else {
      place.first += second.shift;
      place.position = place.first + second.position;
    }
  }
  return place;
}

// Row tiles of Q, and column tiles of K and V, of a kernel with this Shape.
template <typename Shape, int kRows>
__device__ __forceinline__ TilePlace query_place(const kernels::AttentionParams& params, int tile) {
  return place_of_tile<static_cast<Positions>(Shape::kPositions), kRows>(
      tile, params.seq_q, params.q_position, params.q_second);
}
template <typename Shape, int kColumns>
__device__ __forceinline__ TilePlace key_place(const kernels::AttentionParams& params, int tile) {
  return place_of_tile<static_cast<Positions>(Shape::kPositions), kColumns>(
      tile, params.seq_k, params.k_position, params.k_second);
}

// Whether positions are read row by row.
template <typename Shape>
__device__ __forceinline__ constexpr bool reads_positions() {
  return static_cast<Positions>(Shape::kPositions) == Positions::kOfRows;
}

}  // namespace annulus::tile

#endif  // ANNULUS_TILE_SEGMENTS_CUH_
