#ifndef ANNULUS_TILE_MASKING_CUH_
#define ANNULUS_TILE_MASKING_CUH_

// Sets the scores of keys that a query does not see to -inf. Only the tiles that need it come here:
// the last column tile where Sk is no multiple of N, and the tiles that the list calls partial.

#include "ptx/opaque.cuh"
#include "tile/mask.cuh"
#include "tile/row_mask.cuh"
#include "tile/softmax.cuh"

namespace annulus::tile {

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

// Hides what each word of a lane's rows lacks: visible(row, column), both from the lane's first on.
template <int kRowTiles, int kPieces, typename Visible>
__device__ __forceinline__ void hide_others(float (&scores)[kRowTiles][kPieces][4],
                                            const Visible& visible) {
  using Words = RowWords<kPieces>;
#pragma unroll
  for (int r = 0; r < kRowTiles; ++r) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
#pragma unroll
      for (int word = 0; word < Words::kCount; ++word) {
        hide(scores[r], half, word, visible(16 * r + 8 * half, word * Words::kColumns));
      }
    }
  }
}

// The lane's first row and column of a tile.
struct LanePlace {
  int row;
  int column;
};

// Keys from `keys_left` on, counted from the tile's first, do not exist.
template <int kRowTiles, int kPieces>
__device__ __forceinline__ void mask_tail(float (&scores)[kRowTiles][kPieces][4], LanePlace lane,
                                          int keys_left) {
  const int limit = keys_left - lane.column;
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

// Keys from `keys_left` on do not exist; and where the tile is partial Mask::visible(mask, q, k)
// decides about the others, with their positions.
//
// What compares positions is arithmetic on the words of a row, as the end of the keys is. An
// expression that searches lists, divides or looks bits up (Mask::kInLoop) fills them bit by bit
// (tile/row_mask.cuh), and the end of the keys is apart because its word would spill beside that.
template <typename Mask, int kRowTiles, int kPieces>
__device__ __forceinline__ void mask_tile(float (&scores)[kRowTiles][kPieces][4],
                                          MaskContext<kPieces * 8> context, LanePlace lane,
                                          bool partial, int keys_left) {
  int q = context.tile_q + lane.row;
  int k = context.tile_k + lane.column;
  // Such tiles are rare: nothing of the mask may occupy registers in the other ones.
  ptx::make_opaque(q);
  ptx::make_opaque(k);
  if constexpr (!Mask::kInLoop) {
    hide_others(scores, [&](int row, int column) {
      const ComparedRow<kPieces * 8> mask(context, k + column);
      return columns_up_to(keys_left - 1 - lane.column - column) &
             (RowBits(!partial) | Mask::visible(mask, q + row, k + column));
    });
  } else {
    if (keys_left < kPieces * 8) mask_tail(scores, lane, keys_left);
    if (!partial) return;
    hide_others(scores, [&](int row, int column) {
      const auto place = [&](int bit, MaskContext<kPieces * 8>&) {
        return k + column + bit / 2 * 8 + bit % 2;
      };
      constexpr int kBits = RowWords<kPieces>::kBits;
      Column of_row;
      const RowMask<kPieces * 8, kBits, decltype(place)> mask(context, place, of_row);
      return Mask::visible(mask, q + row, of_row);
    });
  }
}

// The same for tensors whose rows lie in several places of the sequence: `q_positions` and
// `k_positions` are those of the tile's rows and columns. Always bit by bit: positions are loads.
template <typename Mask, int kRowTiles, int kPieces>
__device__ __forceinline__ void mask_placed_tile(float (&scores)[kRowTiles][kPieces][4],
                                                 MaskContext<kPieces * 8> context,
                                                 const int* q_positions, const int* k_positions,
                                                 LanePlace lane, bool partial, int keys_left) {
  using Words = RowWords<kPieces>;
  if (keys_left < kPieces * 8) mask_tail(scores, lane, keys_left);
  if (!partial) return;
  ptx::make_opaque(lane.row);
  ptx::make_opaque(lane.column);
  hide_others(scores, [&](int row, int column) {
    const int tile_row = lane.row + row;
    const int q = q_positions[tile_row];
    context.tile_q = q - tile_row;
    const auto place = [&](int bit, MaskContext<kPieces * 8>& of_column) {
      const int tile_column = lane.column + column + bit / 2 * 8 + bit % 2;
      const int k = k_positions[tile_column];
      of_column.tile_k = k - tile_column;
      return k;
    };
    Column of_row;
    const RowMask<kPieces * 8, Words::kBits, decltype(place)> mask(context, place, of_row);
    return Mask::visible(mask, q, of_row);
  });
}

}  // namespace annulus::tile

#endif  // ANNULUS_TILE_MASKING_CUH_
