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

// A row's visibility is words of at most 32 bits, for as many pieces each.
template <int kPieces>
struct RowWords {
  enum : int {
    kCount = (kPieces + 15) / 16,
    kPiecesEach = kPieces / kCount,
    kBits = 2 * kPiecesEach,
    kColumns = 8 * kPiecesEach,
  };
  static_assert(kPieces % kCount == 0, "words of a row have the same number of pieces");
};

// The elements of a row that have no bit in its `index`-th word, in the half of the fragment that
// holds it.
template <int kPieces>
__device__ __forceinline__ void hide(float (&scores)[kPieces][4], int half, int index,
                                     RowBits visible) {
  using Words = RowWords<kPieces>;
#pragma unroll
  for (int bit = 0; bit < Words::kBits; ++bit) {
    if (!(visible.word >> bit & 1u)) {
      scores[index * Words::kPiecesEach + bit / 2][2 * half + bit % 2] = minus_infinity();
    }
  }
}

// Mask::visible(mask, q, k) decides, with the positions of this lane's first row and column.
//
// What compares positions is arithmetic on the words of a row. An expression that searches lists,
// divides or looks bits up (Mask::kInLoop) fills them bit by bit (tile/row_mask.cuh).
template <typename Mask, int kRowTiles, int kPieces>
__device__ __forceinline__ void mask_partial(float (&scores)[kRowTiles][kPieces][4],
                                             MaskContext<kPieces * 8> context, int q, int k) {
  using Words = RowWords<kPieces>;
  // Partial tiles are rare: nothing of the mask may occupy registers in the other ones.
  ptx::make_opaque(q);
  ptx::make_opaque(k);
#pragma unroll
  for (int r = 0; r < kRowTiles; ++r) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
#pragma unroll
      for (int word = 0; word < Words::kCount; ++word) {
        const int row = q + 16 * r + 8 * half;
        const int first = k + word * Words::kColumns;
        if constexpr (Mask::kInLoop) {
          const auto place = [&](int bit, MaskContext<kPieces * 8>&) {
            return first + bit / 2 * 8 + bit % 2;
          };
          Column column;
          const RowMask<kPieces * 8, Words::kBits, decltype(place)> mask(context, place, column);
          hide(scores[r], half, word, Mask::visible(mask, row, column));
        } else {
          const ComparedRow<kPieces * 8> mask(context, first);
          hide(scores[r], half, word, Mask::visible(mask, row, first));
        }
      }
    }
  }
}

// The same for tensors whose rows lie in several places of the sequence: `q_positions` and
// `k_positions` are those of the tile's rows and columns, `row` and `column` this lane's first ones
// in the tile. Always bit by bit: positions are loads.
template <typename Mask, int kRowTiles, int kPieces>
__device__ __forceinline__ void mask_placed(float (&scores)[kRowTiles][kPieces][4],
                                            MaskContext<kPieces * 8> context,
                                            const int* q_positions, const int* k_positions, int row,
                                            int column) {
  using Words = RowWords<kPieces>;
  ptx::make_opaque(row);
  ptx::make_opaque(column);
#pragma unroll
  for (int r = 0; r < kRowTiles; ++r) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int tile_row = row + 16 * r + 8 * half;
      const int q = q_positions[tile_row];
      context.tile_q = q - tile_row;
#pragma unroll
      for (int word = 0; word < Words::kCount; ++word) {
        const auto place = [&](int bit, MaskContext<kPieces * 8>& of_column) {
          const int tile_column = column + word * Words::kColumns + bit / 2 * 8 + bit % 2;
          const int k = k_positions[tile_column];
          of_column.tile_k = k - tile_column;
          return k;
        };
        Column of_row;
        const RowMask<kPieces * 8, Words::kBits, decltype(place)> mask(context, place, of_row);
        hide(scores[r], half, word, Mask::visible(mask, q, of_row));
      }
    }
  }
}

}  // namespace annulus::tile

#endif  // ANNULUS_TILE_MASKING_CUH_
