#ifndef ANNULUS_TILE_MASKING_CUH_
#define ANNULUS_TILE_MASKING_CUH_

// Sets the scores of keys that a query does not see to -inf. Only the tiles that need it come here:
// the last column tile where Sk is no multiple of N, and the tiles that the list calls partial.

#include "ptx/opaque.cuh"
#include "tile/mask.cuh"
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

// Mask::visible(context, q, k) decides, with the positions of this lane's first row and column.
//
// An expression of comparisons is written out for every element: most of it folds into constants.
// One that searches lists or looks bits up (Mask::kInLoop) is evaluated in a loop over the columns
// of a row, one bit each, so that the program holds it once per row and not once per element.
template <typename Mask, int kRowTiles, int kPieces>
__device__ __forceinline__ void mask_partial(float (&scores)[kRowTiles][kPieces][4],
                                             const MaskContext<kPieces * 8>& context, int q,
                                             int k) {
  static_assert(kPieces <= 16, "a row's visibility must fit the 32 bits of one register: N <= 128");
  // Partial tiles are rare: nothing of the mask may occupy registers in the other ones.
  ptx::make_opaque(q);
  ptx::make_opaque(k);
#pragma unroll
  for (int r = 0; r < kRowTiles; ++r) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int row = q + 16 * r + 8 * half;
      unsigned hidden = 0;
      if constexpr (Mask::kInLoop) {
#pragma unroll 1
        for (int bit = 0; bit < 2 * kPieces; ++bit) {
          const bool visible = Mask::visible(context, row, k + bit / 2 * 8 + bit % 2);
          hidden |= (visible ? 0u : 1u) << bit;
        }
      }
#pragma unroll
      for (int bit = 0; bit < 2 * kPieces; ++bit) {
        float& score = scores[r][bit / 2][2 * half + bit % 2];
        if constexpr (Mask::kInLoop) {
          if (hidden >> bit & 1u) score = minus_infinity();
        } else {
          if (!Mask::visible(context, row, k + bit / 2 * 8 + bit % 2)) score = minus_infinity();
        }
      }
    }
  }
}

// The same for tensors whose rows lie in several places of the sequence: `q_positions` and
// `k_positions` are those of the tile's rows and columns, `row` and `column` this lane's first ones
// in the tile. Always in a loop: positions are loads.
template <typename Mask, int kRowTiles, int kPieces>
__device__ __forceinline__ void mask_placed(float (&scores)[kRowTiles][kPieces][4],
                                            MaskContext<kPieces * 8> context,
                                            const int* q_positions, const int* k_positions, int row,
                                            int column) {
  ptx::make_opaque(row);
  ptx::make_opaque(column);
#pragma unroll
  for (int r = 0; r < kRowTiles; ++r) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int tile_row = row + 16 * r + 8 * half;
      const int q = q_positions[tile_row];
      context.tile_q = q - tile_row;
      unsigned hidden = 0;
#pragma unroll 1
      for (int bit = 0; bit < 2 * kPieces; ++bit) {
        const int tile_column = column + bit / 2 * 8 + bit % 2;
        const int k = k_positions[tile_column];
        context.tile_k = k - tile_column;
        hidden |= (Mask::visible(context, q, k) ? 0u : 1u) << bit;
      }
#pragma unroll
      for (int bit = 0; bit < 2 * kPieces; ++bit) {
        if (hidden >> bit & 1u) scores[r][bit / 2][2 * half + bit % 2] = minus_infinity();
      }
    }
  }
}

}  // namespace annulus::tile

#endif  // ANNULUS_TILE_MASKING_CUH_
