#ifndef ANNULUS_TILE_TURNS_CUH_
#define ANNULUS_TILE_TURNS_CUH_

namespace annulus::tile {

// The number of pieces that in_turns() processes at a time: a quarter of the pieces if that is
// whole, else half.
__device__ constexpr int few_of(int pieces) { return pieces / (pieces % 4 == 0 ? 4 : 2); }

// Calls add(piece, row, column) for each piece of the scores, with its first row and column, in a
// loop. If the loop were unrolled over all pieces, the values that `add` reads would need too many
// registers. A loop cannot index registers by its counter, so each turn processes the first kFew
// pieces and then rotates all pieces by kFew places; after the last turn each piece is back in its
// place. kFew divides the number of pieces.
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
