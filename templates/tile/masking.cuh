#ifndef ANNULUS_TILE_MASKING_CUH_
#define ANNULUS_TILE_MASKING_CUH_

// Sets the scores of keys that a query does not see to -inf. Only the tiles that need it come here:
// the last column tile where Sk is no multiple of N, and the tiles that the list calls partial.

#include "ptx/opaque.cuh"
#include "tile/mask.cuh"
#include "tile/row_mask.cuh"
#include "tile/softmax.cuh"

namespace annulus::tile {

// Keys from `keys_left` on (counted from the tile's first key) do not exist.
template <int kRowTiles, int kPieces>
__device__ __forceinline__ void mask_tail(float (&scores)[kRowTiles][kPieces][4], int keys_left,
                                          unsigned lane) {
  const int limit = keys_left - static_cast<int>(lane % 4 * 2);
#pragma unroll
  for (int c = 0; c < kPieces; ++c) {
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const bool exists = 8 * c + i < limit;
#pragma unroll
      for (int r = 0; r < kRowTiles; ++r) {
        if (!exists) scores[r][c][i] = scores[r][c][i + 2] = minus_infinity();
      }
    }
  }
}

// The elements of one row, whose position is q, in the half of the fragment that holds it.
template <typename Mask, typename Place, int kPieces>
__device__ __forceinline__ void hide_row(float (&scores)[kPieces][4], int half,
                                         MaskContext<kPieces * 8>& context, const Place& place,
                                         int q) {
  static_assert(kPieces <= 16, "a row's visibility must fit the 32 bits of one register: N <= 128");
  Column column;
  const RowMask<kPieces * 8, Place> mask(context, place, column);
  const RowBits visible = Mask::visible(mask, q, column);
#pragma unroll
  for (int bit = 0; bit < 2 * kPieces; ++bit) {
    if (!(visible.word >> bit & 1u)) scores[bit / 2][2 * half + bit % 2] = minus_infinity();
  }
}

// Mask::visible(context, q, k) decides, with the positions of this lane's first row and column.
//
// An expression of comparisons is written out for every element: most of it folds into constants.
// One that searches lists, divides or looks bits up (Mask::kInLoop) is evaluated row by row
// (tile/row_mask.cuh), so that the program holds it once per row and not once per element.
template <typename Mask, int kRowTiles, int kPieces>
__device__ __forceinline__ void mask_partial(float (&scores)[kRowTiles][kPieces][4],
                                             MaskContext<kPieces * 8> context, int q, int k) {
  // Partial tiles are rare: nothing of the mask may occupy registers in the other ones.
  ptx::make_opaque(q);
  ptx::make_opaque(k);
  const auto place = [&](int bit, MaskContext<kPieces * 8>&) { return k + bit / 2 * 8 + bit % 2; };
#pragma unroll
  for (int r = 0; r < kRowTiles; ++r) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int row = q + 16 * r + 8 * half;
      if constexpr (Mask::kInLoop) {
        hide_row<Mask>(scores[r], half, context, place, row);
      } else {
#pragma unroll
        for (int bit = 0; bit < 2 * kPieces; ++bit) {
          if (!Mask::visible(context, row, place(bit, context))) {
            scores[r][bit / 2][2 * half + bit % 2] = minus_infinity();
          }
        }
      }
    }
  }
}

// The same for tensors whose rows lie in several places of the sequence: `q_positions` and
// `k_positions` are those of the tile's rows and columns, `row` and `column` this lane's first ones
// in the tile. Always row by row: positions are loads.
template <typename Mask, int kRowTiles, int kPieces>
__device__ __forceinline__ void mask_placed(float (&scores)[kRowTiles][kPieces][4],
                                            MaskContext<kPieces * 8> context,
                                            const int* q_positions, const int* k_positions, int row,
                                            int column) {
  ptx::make_opaque(row);
  ptx::make_opaque(column);
  const auto place = [&](int bit, MaskContext<kPieces * 8>& of_column) {
    const int tile_column = column + bit / 2 * 8 + bit % 2;
    const int k = k_positions[tile_column];
    of_column.tile_k = k - tile_column;
    return k;
  };
#pragma unroll
  for (int r = 0; r < kRowTiles; ++r) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int tile_row = row + 16 * r + 8 * half;
      const int q = q_positions[tile_row];
      context.tile_q = q - tile_row;
      hide_row<Mask>(scores[r], half, context, place, q);
    }
  }
}

}  // namespace annulus::tile

#endif  // ANNULUS_TILE_MASKING_CUH_
