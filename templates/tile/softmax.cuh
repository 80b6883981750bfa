#ifndef ANNULUS_TILE_SOFTMAX_CUH_
#define ANNULUS_TILE_SOFTMAX_CUH_

// The online softmax of one warp's rows: the largest score so far and the sum of probabilities, in
// base 2. The four lanes of a quad share a row. `row_max` is the same in all four; `sum` is each
// lane's own part, and complete_sums() adds the parts up once at the end.

#include "ptx/math.cuh"
#include "tile/score.cuh"

namespace annulus::tile {

__device__ __forceinline__ float minus_infinity() { return __int_as_float(0xff800000); }
__device__ __forceinline__ float not_a_number() { return __int_as_float(0x7fffffff); }

template <int kRowTiles>
struct RowState {
  float row_max[kRowTiles][2];  // rows 16 r + lane / 4 and 8 rows below; -inf: no key seen yet
  float sum[kRowTiles][2];
};

// Whether no key was visible to the row. Requires: the sums are complete.
template <int kRowTiles>
__device__ __forceinline__ bool is_empty(const RowState<kRowTiles>& state, int r, int half) {
  return state.sum[r][half] == 0.0f;
}

__device__ __forceinline__ float quad_max(float x) {
  x = fmaxf(x, __shfl_xor_sync(0xffffffffu, x, 1));
  return fmaxf(x, __shfl_xor_sync(0xffffffffu, x, 2));
}

__device__ __forceinline__ float quad_sum(float x) {
  x += __shfl_xor_sync(0xffffffffu, x, 1);
  return x + __shfl_xor_sync(0xffffffffu, x, 2);
}

// Adds up the lanes' parts of the sums. If a row saw keys and yet all its probabilities are 0,
// because a score is beyond what fp32 holds, the sum becomes NaN: the row must not look like an
// empty one.
template <int kRowTiles>
__device__ __forceinline__ void complete_sums(RowState<kRowTiles>& state) {
#pragma unroll
  for (int r = 0; r < kRowTiles; ++r) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const float sum = quad_sum(state.sum[r][half]);
      const bool lost = sum == 0.0f && state.row_max[r][half] != minus_infinity();
      state.sum[r][half] = lost ? not_a_number() : sum;
    }
  }
}

// Adds one tile of scores (masked ones are -inf) to the state and replaces the scores by their
// probabilities relative to the new row max. `correction` is the factor by which the caller has to
// rescale the output so far. `scale` is only read with kPositiveScale.
//
// A row that has seen no visible key has row max -inf, and -inf - -inf would be NaN: probabilities
// are then taken relative to 0, which gives 2^-inf = 0 for its masked scores and for the old sum
// alike. NaN scores do not move the row max (fmaxf drops them) but reach sum and output, as they
// must.
template <Score kScore, int kRowTiles, int kPieces>
__device__ __forceinline__ void online_softmax(RowState<kRowTiles>& state,
                                               float (&scores)[kRowTiles][kPieces][4], float scale,
                                               float (&correction)[kRowTiles][2]) {
#pragma unroll
  for (int r = 0; r < kRowTiles; ++r) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      float row_max = fmaxf(scores[r][0][2 * half], scores[r][0][2 * half + 1]);
#pragma unroll
      for (int c = 1; c < kPieces; ++c) {
        row_max = fmaxf(row_max, fmaxf(scores[r][c][2 * half], scores[r][c][2 * half + 1]));
      }
      row_max = quad_max(row_max);
      if constexpr (kScore == Score::kPositiveScale) row_max *= scale;
      row_max = fmaxf(state.row_max[r][half], row_max);
      const float base = row_max == minus_infinity() ? 0.0f : row_max;
      correction[r][half] = ptx::exp2(state.row_max[r][half] - base);
      state.row_max[r][half] = row_max;
      float sum = 0.0f;
#pragma unroll
      for (int c = 0; c < kPieces; ++c) {
#pragma unroll
        for (int i = 2 * half; i < 2 * half + 2; ++i) {
          if constexpr (kScore == Score::kPositiveScale) {
            scores[r][c][i] = ptx::exp2(fmaf(scores[r][c][i], scale, -base));
          } else {
            scores[r][c][i] = ptx::exp2(scores[r][c][i] - base);
          }
          sum += scores[r][c][i];
        }
      }
      state.sum[r][half] = state.sum[r][half] * correction[r][half] + sum;
    }
  }
}

// Multiplies each row of the output by its correction.
template <int kRowTiles, int kOutputPieces>
__device__ __forceinline__ void rescale(float (&output)[kRowTiles][kOutputPieces][4],
                                        const float (&correction)[kRowTiles][2]) {
#pragma unroll
  for (int r = 0; r < kRowTiles; ++r) {
#pragma unroll
    for (int d = 0; d < kOutputPieces; ++d) {
#pragma unroll
      for (int i = 0; i < 4; ++i) output[r][d][i] *= correction[r][i / 2];
    }
  }
}

// Does the same for all lanes of a warp. A warp whose corrections are all 1, because no row max has
// changed, skips the multiplications, which would change nothing. Most tiles of a long row are like
// this.
template <int kRowTiles, int kOutputPieces>
__device__ __forceinline__ void rescale_moved(float (&output)[kRowTiles][kOutputPieces][4],
                                              const float (&correction)[kRowTiles][2]) {
  bool moved = false;
#pragma unroll
  for (int r = 0; r < kRowTiles; ++r) {
    moved = moved || correction[r][0] != 1.0f || correction[r][1] != 1.0f;
  }
  if (__any_sync(0xffffffffu, moved)) rescale(output, correction);
}

// Adds a sink logit to the state, as the score of a key without a value: the sum of the row grows
// and its output does not. A row that saw no key gives 0, even if a NaN in V has changed its zeros.
// Requires: the sums are complete.
template <int kRowTiles, int kOutputPieces>
__device__ __forceinline__ void add_sink(RowState<kRowTiles>& state,
                                         float (&output)[kRowTiles][kOutputPieces][4], float sink) {
#pragma unroll
  for (int r = 0; r < kRowTiles; ++r) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const bool empty = is_empty(state, r, half);
      const float row_max = fmaxf(state.row_max[r][half], sink);
      const float correction = ptx::exp2(state.row_max[r][half] - row_max);
      state.row_max[r][half] = row_max;
      state.sum[r][half] = state.sum[r][half] * correction + ptx::exp2(sink - row_max);
#pragma unroll
      for (int d = 0; d < kOutputPieces; ++d) {
#pragma unroll
        for (int i = 2 * half; i < 2 * half + 2; ++i) {
          output[r][d][i] = empty ? 0.0f : output[r][d][i] * correction;
        }
      }
    }
  }
}

}  // namespace annulus::tile

#endif  // ANNULUS_TILE_SOFTMAX_CUH_
