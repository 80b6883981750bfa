#ifndef ANNULUS_TILE_SCORE_CUH_
#define ANNULUS_TILE_SCORE_CUH_

// Turns a product q.k into the base-2 score whose probabilities softmax sums. kernels::Score lists
// the ways.

#include "params/attention_params.h"
#include "ptx/math.cuh"

namespace annulus::tile {

using kernels::Score;

// tanh to a relative error of about 1e-6. The instruction tanh.approx has 5e-4, which would exceed
// the tolerance of LSE.
__device__ __forceinline__ float tanh(float x) {
  constexpr float kTwoLog2E = 2.885390081777927f;
  // 1 - 2 / (1 + e^2x) is right at both infinities but loses digits near 0; near 0 the series x -
  // x^3/3 + 2x^5/15 - 17x^7/315 + 62x^9/2835 is used.
  const float large = 1.0f - 2.0f * ptx::reciprocal(1.0f + ptx::exp2(x * kTwoLog2E));
  const float y = x * x;
  float series = 0.021869488f;
  series = series * y - 0.053968254f;
  series = series * y + 0.13333333f;
  series = series * y - 0.33333333f;
  const float small = x + x * y * series;
  return fabsf(x) < 0.3f ? small : large;
}

// Turns products into final scores if that must happen before masking. With kPositiveScale it does
// nothing: softmax applies the scale in the exponent.
template <Score kScore, int kRowTiles, int kPieces>
__device__ __forceinline__ void finish_scores(float (&scores)[kRowTiles][kPieces][4], float scale,
                                              float softcap) {
  if constexpr (kScore != Score::kPositiveScale) {
#pragma unroll
    for (int r = 0; r < kRowTiles; ++r) {
#pragma unroll
      for (int c = 0; c < kPieces; ++c) {
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          float t = scores[r][c][i] * scale;
          if constexpr (kScore == Score::kSoftcap) t = softcap * tanh(t);
          scores[r][c][i] = t;
        }
      }
    }
  }
}

}  // namespace annulus::tile

#endif  // ANNULUS_TILE_SCORE_CUH_
