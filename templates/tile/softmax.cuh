#ifndef ANNULUS_TILE_SOFTMAX_CUH_
#define ANNULUS_TILE_SOFTMAX_CUH_

// The online softmax of one warp's rows: the largest score so far and the sum of powers, in base 2.
// A row lies in the four lanes of a quad; `peak` is the same in all four, `sum` is each lane's own
// part and is added up once at the end.

#include "ptx/math.cuh"
#include "tile/score.cuh"

namespace annulus::tile {

__device__ __forceinline__ float minus_infinity() { return __int_as_float(0xff800000); }
__device__ __forceinline__ float not_a_number() { return __int_as_float(0x7fffffff); }

template <int kRowTiles>
struct RowState {
  float peak[kRowTiles][2];  // rows 16 r + lane / 4 and 8 further on; -inf: nothing seen
  float sum[kRowTiles][2];
};

// Whether no key was visible. Requires: the sums are complete.
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

// Adds up what the lanes have of the sums. Where a row saw keys and all its powers are 0, because a
// score is beyond what fp32 holds, the sum is NaN: it must not look like that of an empty row.
template <int kRowTiles>
__device__ __forceinline__ void complete_sums(RowState<kRowTiles>& state) {
#pragma unroll
  for (int r = 0; r < kRowTiles; ++r) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const float sum = quad_sum(state.sum[r][half]);
      const bool lost = sum == 0.0f && state.peak[r][half] != minus_infinity();
      state.sum[r][half] = lost ? not_a_number() : sum;
    }
  }
}

// Takes one tile of scores (masked ones are -inf) into the state and leaves their powers relative
// to the new peak in `scores`; `shrink` is what the output up to now has to be multiplied with.
//
// A row that has seen no visible key has peak -inf, and -inf - -inf would be NaN: powers are then
// taken relative to 0, which gives 2^-inf = 0 for its masked scores and for the old sum alike.
// NaN scores do not move the peak (fmaxf drops them) but reach sum and output, as they must.
template <Score kScore, int kRowTiles, int kPieces>
__device__ __forceinline__ void weigh(RowState<kRowTiles>& state,
                                      float (&scores)[kRowTiles][kPieces][4], float scale,
                                      float (&shrink)[kRowTiles][2]) {
#pragma unroll
  for (int r = 0; r < kRowTiles; ++r) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      float peak = fmaxf(scores[r][0][2 * half], scores[r][0][2 * half + 1]);
#pragma unroll
      for (int c = 1; c < kPieces; ++c) {
        peak = fmaxf(peak, fmaxf(scores[r][c][2 * half], scores[r][c][2 * half + 1]));
      }
      peak = quad_max(peak);
      if constexpr (kScore == Score::kPositiveScale) peak *= scale;
      peak = fmaxf(state.peak[r][half], peak);
      const float base = peak == minus_infinity() ? 0.0f : peak;
      shrink[r][half] = ptx::exp2(state.peak[r][half] - base);
      state.peak[r][half] = peak;
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
      state.sum[r][half] = state.sum[r][half] * shrink[r][half] + sum;
    }
  }
}

template <int kRowTiles, int kOutputPieces>
__device__ __forceinline__ void rescale(float (&output)[kRowTiles][kOutputPieces][4],
                                        const float (&shrink)[kRowTiles][2]) {
#pragma unroll
  for (int r = 0; r < kRowTiles; ++r) {
#pragma unroll
    for (int d = 0; d < kOutputPieces; ++d) {
#pragma unroll
      for (int i = 0; i < 4; ++i) output[r][d][i] *= shrink[r][i / 2];
    }
  }
}

// Takes one more score into the state, that of a key without a value: the sum of the row grows and
// its output does not. A row that saw no key gives 0, whatever a NaN in V has made of its zeros.
// Requires: the sums are complete.
template <int kRowTiles, int kOutputPieces>
__device__ __forceinline__ void add_sink(RowState<kRowTiles>& state,
                                         float (&output)[kRowTiles][kOutputPieces][4], float sink) {
#pragma unroll
  for (int r = 0; r < kRowTiles; ++r) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const bool empty = is_empty(state, r, half);
      const float peak = fmaxf(state.peak[r][half], sink);
      const float shrink = ptx::exp2(state.peak[r][half] - peak);
      state.peak[r][half] = peak;
      state.sum[r][half] = state.sum[r][half] * shrink + ptx::exp2(sink - peak);
#pragma unroll
      for (int d = 0; d < kOutputPieces; ++d) {
#pragma unroll
        for (int i = 2 * half; i < 2 * half + 2; ++i) {
          output[r][d][i] = empty ? 0.0f : output[r][d][i] * shrink;
        }
      }
    }
  }
}

}  // namespace annulus::tile

#endif  // ANNULUS_TILE_SOFTMAX_CUH_
