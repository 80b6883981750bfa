#ifndef ANNULUS_TILE_TURNS_CUH_
#define ANNULUS_TILE_TURNS_CUH_

namespace annulus::tile {

// A quarter of the pieces, or half of them.
__device__ constexpr int few_of(int pieces) { return pieces / (pieces % 4 == 0 ? 4 : 2); }

// Calls add(piece, row, column) for each piece of the scores, with its first row and column. What
// is read for all of them at once would take more registers than there are: so only the first few
// pieces are worked on, and then all of them move on by as many places. kFew says how many; it
// divides their number.
template <int kFew, int kRowTiles, int kPieces, typename Add>
__device__ __forceinline__ void in_turns(float (&scores)[kRowTiles][kPieces][4], const Add& add) {
#pragma unroll 1
  for (int first = 0; first < kPieces; first += kFew) {
#pragma unroll
    for (int r = 0; r < kRowTiles; ++r) {
#pragma unroll
      for (int c = 0; c < kFew; ++c) add(scores[r][c], 16 * r, 8 * (first + c));
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        float done[kFew];
#pragma unroll
        for (int c = 0; c < kFew; ++c) done[c] = scores[r][c][i];
#pragma unroll
        for (int c = 0; c < kPieces - kFew; ++c) scores[r][c][i] = scores[r][c + kFew][i];
#pragma unroll
        for (int c = 0; c < kFew; ++c) scores[r][kPieces - kFew + c][i] = done[c];
      }
    }
  }
}

}  // namespace annulus::tile

#endif  // ANNULUS_TILE_TURNS_CUH_
