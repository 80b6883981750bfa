#ifndef ANNULUS_TILE_MASKING_CUH_
#define ANNULUS_TILE_MASKING_CUH_

// Sets the scores of keys that a query does not see to -inf. It is called only for two kinds of
// tiles: the last column tile if Sk is not a multiple of N, and partial tiles.

#include "ptx/hide.cuh"
#include "ptx/opaque.cuh"
#include "tile/mask.cuh"
#include "tile/mask_program.cuh"
#include "tile/row_mask.cuh"
#include "tile/softmax.cuh"

namespace annulus::tile {

// The visibility of a row is one or more words. Each word is for at most 16 pieces of 8 columns,
// and a lane owns two columns of each piece.
template <int kPieces>
struct RowWords {
  enum : int {
    kCount = (kPieces + 15) / 16,
    kPiecesEach = kPieces / kCount,
    kBits = 2 * kPiecesEach,
    kColumns = 8 * kPiecesEach,
    // Masks of short rows are short code already, and their kernels have no free registers.
    kLong = kPieces >= 8,
  };
  static_assert(kPieces % kCount == 0, "words of a row have the same number of pieces");
};

// Hides the elements of a row whose bit in the row's `index`-th word is 0, from piece kPiece of the
// word on. `half` is the half of the fragment that holds the row.
template <int kPieces, int kPiece = 0>
__device__ __forceinline__ void hide(float (&scores)[kPieces][4], int half, int index,
                                     RowBits visible) {
  using Words = RowWords<kPieces>;
  const int first = 2 * half;
  float(*at)[4] = scores + (index * Words::kPiecesEach + kPiece);
  if constexpr (Words::kLong && kPiece + 4 <= Words::kPiecesEach) {
    ptx::hide_eight<2 * kPiece>(at[0][first], at[0][first + 1], at[1][first], at[1][first + 1],
                                at[2][first], at[2][first + 1], at[3][first], at[3][first + 1],
                                visible.word);
    hide<kPieces, kPiece + 4>(scores, half, index, visible);
  } else {
#pragma unroll
    for (int bit = 0; bit < Words::kBits - 2 * kPiece; ++bit) {
      if (!(visible.word >> (2 * kPiece + bit) & 1u)) {
        at[bit / 2][first + bit % 2] = minus_infinity();
      }
    }
  }
}

// Hides the elements whose bits are 0 in the words of all of a lane's rows. visible(row, column)
// returns the word of a row from a column on; both are counted from the lane's first.
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

// Whether a mask is a program (tile/mask_program.cuh): the value of Mask::kProgram, which a Mask
// may leave out.
template <typename Mask, typename = void>
struct IsProgram {
  enum : bool { kIs = false };
};
template <typename Mask>
struct IsProgram<Mask, Void<decltype(Mask::kProgram)>> {
  enum : bool { kIs = Mask::kProgram };
};

// Like hide_others(), for a long visible() whose code is in the kernel once for all rows.
template <int kRowTiles, int kPieces, typename Visible>
__device__ __forceinline__ void hide_others_in_loop(float (&scores)[kRowTiles][kPieces][4],
                                                    const Visible& visible) {
  using Words = RowWords<kPieces>;
  if constexpr (!Words::kLong) {
    hide_others(scores, visible);
  } else {
    constexpr int kCount = 2 * kRowTiles * Words::kCount;
    unsigned words[kCount] = {};
#pragma unroll 1
    for (int index = 0; index < kCount; ++index) {
      const RowBits bits =
          visible(8 * (index / Words::kCount), index % Words::kCount * Words::kColumns);
      // The number of the word is not a constant, but arrays in registers must be indexed by
      // constants.
#pragma unroll
      for (int i = 0; i < kCount; ++i) words[i] = i == index ? bits.word : words[i];
    }
    hide_others(scores, [&](int row, int column) {
      return RowBits(words[row / 8 * Words::kCount + column / Words::kColumns]);
    });
  }
}

// The lane's first row and column of a tile.
struct LanePlace {
  int row;
  int column;
};

// Hides the keys that do not exist: the keys from `keys_left` on, counted from the tile's start.
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

// The words of all of a lane's rows, which are the results that a program computes with.
template <int kCount>
struct RowAnswers {
  RowBits words[kCount];

  __device__ __forceinline__ explicit RowAnswers(bool all) {
#pragma unroll
    for (int i = 0; i < kCount; ++i) words[i] = RowBits(all);
  }
  __device__ __forceinline__ RowAnswers operator!() const {
    return each([&](int i) { return !words[i]; });
  }
  __device__ __forceinline__ RowAnswers operator&(const RowAnswers& other) const {
    return each([&](int i) { return words[i] & other.words[i]; });
  }
  __device__ __forceinline__ RowAnswers operator|(const RowAnswers& other) const {
    return each([&](int i) { return words[i] | other.words[i]; });
  }
  template <typename Word>
  static __device__ __forceinline__ RowAnswers each(const Word& word) {
    RowAnswers all(false);
#pragma unroll
    for (int i = 0; i < kCount; ++i) all.words[i] = word(i);
    return all;
  }
};

// Hides the keys that a program hides in a partial tile. q and k are the positions of the lane's
// first row and column.
template <int kRowTiles, int kPieces>
__device__ __forceinline__ void mask_by_program(float (&scores)[kRowTiles][kPieces][4],
                                                const MaskContext<kPieces * 8>& context, int q,
                                                int k) {
  using Words = RowWords<kPieces>;
  using Context = MaskContext<kPieces * 8>;
  using Answers = RowAnswers<2 * kRowTiles * Words::kCount>;
  const auto row_of = [&](int i) { return q + 8 * (i / Words::kCount); };
  const auto column_of = [&](int i) { return k + i % Words::kCount * Words::kColumns; };
  const int* const begin = context.params.lists + context.number(0);
  const Answers seen =
      run_mask_program<Answers>(begin, context, [&](MaskOp op, const int* numbers) {
        Context leaf = context;
        leaf.row_numbers = numbers;
        const auto compared = [&](int i) {
          return ComparedRow<kPieces * 8>(leaf, FollowingKeys{column_of(i)});
        };
        switch (op) {
#define ANNULUS_COMPARED_LEAF(name, numbers) \
  case MaskOp::name:                         \
    return Answers::each(                    \
        [&](int i) { return compared(i).name(ANNULUS_SLOTS_##numbers row_of(i), 0); });
#define ANNULUS_SEARCHED_LEAF(name, numbers)
#include "params/mask_leaves_params.h"
#undef ANNULUS_COMPARED_LEAF
#undef ANNULUS_SEARCHED_LEAF
          default: {
            Answers all(false);
#pragma unroll 1
            for (int index = 0; index < 2 * kRowTiles * Words::kCount; ++index) {
              const PositionedColumns<FollowingKeys> place{{column_of(index)}};
              Column of_row;
              const RowMask<kPieces * 8, Words::kBits, decltype(place)> mask(leaf, place, of_row);
              const RowBits bits = mask.searched(op, row_of(index));
              // Arrays in registers must be indexed by constants.
              all = Answers::each([&](int i) { return i == index ? bits : all.words[i]; });
            }
            return all;
          }
        }
      });
  hide_others(scores, [&](int row, int column) {
    return seen.words[row / 8 * Words::kCount + column / Words::kColumns];
  });
}

// Masks a tile. Keys from `keys_left` on do not exist; if the tile is partial, Mask::visible(mask,
// q, k) decides about the other keys by their positions.
//
// If the expression only compares positions, the words of a row are made by arithmetic, and the end
// of the keys is one more comparison. An expression that searches lists, divides or looks bits up
// (Mask::kInLoop) computes them bit by bit (tile/row_mask.cuh). Then the end of the keys is masked
// separately, because another word would cause spills.
template <typename Mask, int kRowTiles, int kPieces>
__device__ __forceinline__ void mask_tile(float (&scores)[kRowTiles][kPieces][4],
                                          MaskContext<kPieces * 8> context, LanePlace lane,
                                          bool partial, int keys_left) {
  int q = context.tile_q + lane.row;
  int k = context.tile_k + lane.column;
  // Such tiles are rare. Opaque positions keep the compiler from computing parts of the mask before
  // the loop over tiles, where they would occupy registers in all tiles.
  ptx::make_opaque(q);
  ptx::make_opaque(k);
  if constexpr (!Mask::kInLoop) {
    hide_others(scores, [&](int row, int column) {
      const ComparedRow<kPieces * 8> mask(context, FollowingKeys{k + column});
      return columns_up_to(keys_left - 1 - lane.column - column) &
             (RowBits(!partial) | Mask::visible(mask, q + row, k + column));
    });
  } else if constexpr (IsProgram<Mask>::kIs) {
    if (keys_left < kPieces * 8) mask_tail(scores, lane, keys_left);
    if (partial) mask_by_program(scores, context, q, k);
  } else {
    if (keys_left < kPieces * 8) mask_tail(scores, lane, keys_left);
    if (!partial) return;
    hide_others_in_loop(scores, [&](int row, int column) {
      const PositionedColumns<FollowingKeys> place{{k + column}};
      constexpr int kBits = RowWords<kPieces>::kBits;
      Column of_row;
      const RowMask<kPieces * 8, kBits, decltype(place)> mask(context, place, of_row);
      return Mask::visible(mask, q + row, of_row);
    });
  }
}

// The visibility of a lane's columns at these positions for the query at position q: one word for
// up to 16 pieces of 8 columns.
template <typename Mask, int kColumns, typename Positions>
__device__ __forceinline__ RowBits visible_columns(MaskContext<kColumns> context, int q,
                                                   Positions positions) {
  ptx::make_opaque(q);
  positions.make_opaque();
  if constexpr (!Mask::kInLoop) {
    const ComparedRow<kColumns, Positions> mask(context, positions);
    return Mask::visible(mask, q, 0);  // k is not used: each leaf reads its own columns
  } else {
    const PositionedColumns<Positions> place{positions};
    Column of_row;
    const RowMask<kColumns, RowWords<kColumns / 8>::kBits, decltype(place)> mask(context, place,
                                                                                 of_row);
    return Mask::visible(mask, q, of_row);
  }
}

// mask_tile for tensors whose rows come from several segments of the sequence. `q_positions` and
// `k_positions` have the positions of the tile's rows and columns. It always works bit by bit,
// because positions are loaded. blocks() needs positions relative to the tile, so the context's
// tile_q and tile_k are set for each row and column: the position minus the place in the tile.
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
  hide_others_in_loop(scores, [&](int row, int column) {
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
