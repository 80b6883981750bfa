#ifndef ANNULUS_TILE_SCORE_MOD_CUH_
#define ANNULUS_TILE_SCORE_MOD_CUH_

// The caller's score expression, applied to every element of every tile before masking. The host
// writes it as text over (m, score, b, h, q, k), for example
//   score + m.real(0) * (k - q)
// where m is a ScoreContext; src/attention/score/score_code.h is the host side. With an expression,
// scores are in base e, and softmax multiplies them by log2(e) in the exponent (Weighing).

#include "params/attention_params.h"
#include "ptx/opaque.cuh"
#include "tile/score_values.cuh"
#include "tile/turns.cuh"

namespace annulus::tile {

// The numbers and tables of the expression. Slots are literals.
struct ScoreContext {
  const kernels::ScoreParams& params;

  // Slots beyond the parameter block are at the front of the words.
  __device__ __forceinline__ int number(int slot) const {
    return slot < kernels::kScoreNumbers ? params.numbers[slot]
                                         : params.words[slot - kernels::kScoreNumbers];
  }
  __device__ __forceinline__ Integer integer(int slot) const { return {number(slot)}; }
  __device__ __forceinline__ Real real(int slot) const {
    return Real(__int_as_float(number(slot)));
  }

  // An entry of a table. The numbers from `slot` on are the begin of the table, its rows (only with
  // two indices) and its columns. Indices out of range are clamped.
  __device__ __forceinline__ Integer integers(int slot, Integer i) const {
    return {params.words[number(slot) + clamped(i, number(slot + 1))]};
  }
  __device__ __forceinline__ Integer integers(int slot, Integer i, Integer j) const {
    const int columns = number(slot + 2);
    return {
        params.words[number(slot) + clamped(i, number(slot + 1)) * columns + clamped(j, columns)]};
  }
  template <typename... Indices>
  __device__ __forceinline__ Real reals(int slot, Indices... indices) const {
    return Real(__int_as_float(integers(slot, indices...).value));
  }

 private:
  __device__ __forceinline__ static int clamped(Integer index, int count) {
    return index.value < 0 ? 0 : index.value < count ? index.value : count - 1;
  }
};

// The template argument of kernels without a score expression.
struct NoScoreMod {
  enum : bool { kPresent = false, kPositions = false, kInLoop = false, kLong = false };
};

// How softmax weighs scores: with an expression, the factor in the exponent is log2(e), in the same
// place as the scale of kPositiveScale; otherwise Shape::kScore decides.
template <typename ScoreMod, Score kScore>
struct Weighing {
  __device__ static constexpr Score score() {
    return ScoreMod::kPresent ? Score::kPositiveScale : kScore;
  }
  static __device__ __forceinline__ float factor(float scale) {
    return ScoreMod::kPresent ? 1.4426950408889634f : scale;
  }
};

template <typename ScoreMod>
class ModifiedScores {
 public:
  __device__ __forceinline__ ModifiedScores(const kernels::ScoreParams& params, int batch, int head)
      : context_{params}, batch_(batch), head_(head) {}

  // Applies the expression to a tile. q and k are the positions of the lane's first row and column.
  template <int kRowTiles, int kPieces>
  __device__ __forceinline__ void apply(float (&scores)[kRowTiles][kPieces][4], int q,
                                        int k) const {
    // Opaque positions keep parts of the expression from being computed before the loop over tiles,
    // where they would occupy registers during the products.
    ptx::make_opaque(q);
    ptx::make_opaque(k);
    const auto modify = [&](float(&piece)[4], int row, int column) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        piece[i] = modified(piece[i], q + row + i / 2 * 8, k + column + i % 2);
      }
    };
    if constexpr (ScoreMod::kInLoop) {
      in_turns<few<kPieces>()>(scores, modify);
    } else {
#pragma unroll
      for (int r = 0; r < kRowTiles; ++r) {
#pragma unroll
        for (int c = 0; c < kPieces; ++c) modify(scores[r][c], 16 * r, 8 * c);
      }
    }
  }

  // Applies the expression to one row of a fragment: the elements of `half`, which belong to the
  // query at position q. `positions` has the positions of the lane's columns
  // (tile/key_positions.cuh).
  template <int kPieces, typename Positions>
  __device__ __forceinline__ void apply_half(float (&scores)[kPieces][4], int half, int q,
                                             Positions positions) const {
    ptx::make_opaque(q);
    positions.make_opaque();
    in_turns<ScoreMod::kInLoop ? few<kPieces>() : kPieces>(
        reinterpret_cast<float(&)[1][kPieces][4]>(scores), [&](float(&piece)[4], int, int column) {
#pragma unroll
          for (int i = 0; i < 2; ++i) {
            piece[2 * half + i] = modified(piece[2 * half + i], q, positions.at(column + i));
          }
        });
  }

  // apply() for positions of the tile's rows and columns that are read from memory. `row` and
  // `column` are the lane's first row and column in the tile.
  template <int kRowTiles, int kPieces>
  __device__ __forceinline__ void apply_placed(float (&scores)[kRowTiles][kPieces][4],
                                               const int* q_positions, const int* k_positions,
                                               int row, int column) const {
    ptx::make_opaque(row);
    ptx::make_opaque(column);
    in_turns<few<kPieces>()>(scores, [&](float(&piece)[4], int piece_row, int piece_column) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        piece[i] = modified(piece[i], q_positions[row + piece_row + i / 2 * 8],
                            k_positions[column + piece_column + i % 2]);
      }
    });
  }

 private:
  // The pieces for which one turn of the loop is unrolled. A long expression is unrolled for one
  // piece only, which keeps the program and NVRTC's time short.
  template <int kPieces>
  __device__ static constexpr int few() {
    return ScoreMod::kLong ? 1 : few_of(kPieces);
  }
  __device__ __forceinline__ float modified(float score, int q, int k) const {
    const Real value = ScoreMod::modified(context_, Real(score), Integer{batch_}, Integer{head_},
                                          Integer{q}, Integer{k});
    return value.value;
  }

  ScoreContext context_;
  int batch_;
  int head_;
};

}  // namespace annulus::tile

#endif  // ANNULUS_TILE_SCORE_MOD_CUH_
