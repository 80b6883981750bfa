#ifndef ANNULUS_TILE_GENERAL_CUH_
#define ANNULUS_TILE_GENERAL_CUH_

// General kernels. A general kernel serves every mask, tile order, score without an expression, and
// state, because it reads from its parameters the features that other kernels are specialised by.
// Its Shape allows all features and has kGeneral. A feature is used if its parameter is given. With
// the same tiles, the results have the same bits as a specialised kernel's.

#include "params/attention_params.h"
#include "tile/score.cuh"
#include "tile/tile_row.cuh"
#include "tile/turns.cuh"

namespace annulus::tile {

// Whether Shape is the Shape of a general kernel. Other Shapes may leave kGeneral out.
template <typename Shape, typename = void>
struct General {
  enum : bool { kIs = false };
};
template <typename Shape>
struct General<Shape, Void<decltype(Shape::kGeneral)>> {
  enum : bool { kIs = Shape::kGeneral };
};

// Whether a launch has a feature that Shape allows. In a specialised kernel it always has; in a
// general kernel it has if the feature's parameter is not null.
template <typename Shape>
__device__ __forceinline__ bool given(const void* parameter) {
  if constexpr (General<Shape>::kIs) {
    return parameter != nullptr;
  } else {
    return true;
  }
}

// Whether terms of position are added to the scores of a launch, if Shape allows such terms.
template <typename Shape>
__device__ __forceinline__ bool has_terms(const kernels::ScoreParams& score) {
  return given<Shape>(score.slopes) || given<Shape>(score.bias);
}

// Turns products into scores like finish_scores(), if that must happen before masking.
template <typename Shape, int kRowTiles, int kPieces>
__device__ __forceinline__ void finish_products(float (&scores)[kRowTiles][kPieces][4],
                                                const kernels::AttentionParams& params) {
  if constexpr (General<Shape>::kIs) {
    // Softmax applies the scale in the exponent, as with Score::kPositiveScale.
    if (params.softmax_factor == params.scale) return;
    finish_scores<Score::kAnyScale>(scores, params.scale, 0.0f);
    if (params.softcap == 0.0f) return;
    in_turns<few_of(kPieces)>(scores, [&](float(&piece)[4], int, int) {
#pragma unroll
      for (int i = 0; i < 4; ++i) piece[i] = params.softcap * tanh(piece[i]);
    });
  } else {
    finish_scores<static_cast<Score>(Shape::kScore)>(scores, params.scale, params.softcap);
  }
}

// The factor that softmax applies to scores. It is not 1 only with Score::kPositiveScale.
template <typename Shape, typename Weighing>
__device__ __forceinline__ float softmax_factor(const kernels::AttentionParams& params) {
  if constexpr (General<Shape>::kIs) {
    return params.softmax_factor;
  } else {
    return Weighing::factor(params.scale);
  }
}

}  // namespace annulus::tile

#endif  // ANNULUS_TILE_GENERAL_CUH_
