#ifndef ANNULUS_TILE_PACKED_SCORES_CUH_
#define ANNULUS_TILE_PACKED_SCORES_CUH_

// Turns products into scores for rows of (query, head of the group), whose queries and heads differ
// from row to row: applies the scale, terms of position, the score expression, and the mask.

#include "params/batch_params.h"
#include "tile/batch_row.cuh"
#include "tile/key_positions.cuh"
#include "tile/masking.cuh"
#include "tile/part_tiles.cuh"
#include "tile/position_terms.cuh"
#include "tile/row_limits.cuh"
#include "tile/score.cuh"
#include "tile/score_mod.cuh"

namespace annulus::tile {

// Turns the products with the keys from `first_key` on into the scores of a warp, before masking.
// row_of(r, half) is the PackedRow of a lane's row.
template <typename Shape, typename ScoreMod, int kRowTiles, int kPieces, typename RowOf>
__device__ __forceinline__ void scale_packed_scores(float (&scores)[kRowTiles][kPieces][4],
                                                    const kernels::BatchParams& params,
                                                    const kernels::BatchRow& tile, int first_key,
                                                    unsigned lane, const RowOf& row_of) {
  constexpr auto kScore = static_cast<Score>(Shape::kScore);
  constexpr bool kTerms = Shape::kAlibi || Shape::kBias;
  static_assert(kScore != Score::kPositiveScale || !(kTerms || ScoreMod::kPresent),
                "terms are added to scores that are scaled, and an expression takes such");
  finish_scores<kScore>(scores, params.scale, params.softcap);
  if constexpr (kTerms || ScoreMod::kPresent) {
    const auto positions = key_positions<Shape::kInterleaved>(
        params, tile, first_key + static_cast<int>(lane % 4 * 2));
#pragma unroll
    for (int r = 0; r < kRowTiles; ++r) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const PackedRow row = row_of(r, half);
        const int q = tile.position + row.query;
        if constexpr (kTerms) {
          const PositionTerms<Shape::kAlibi, Shape::kBias> terms(params.score,
                                                                 static_cast<unsigned>(row.head));
          terms.add_half(scores[r], half, q, positions);
        }
        if constexpr (ScoreMod::kPresent) {
          const ModifiedScores<ScoreMod> modified(params.score, tile.request, row.head);
          modified.apply_half(scores[r], half, q, positions);
        }
      }
    }
  }
}

// Hides the keys that are not in `there`. Unless all queries see all keys (`full`), it also hides
// the keys that a row does not see.
template <typename Shape, typename Mask, int kRowTiles, int kPieces, typename RowOf>
__device__ __forceinline__ void hide_packed_scores(float (&scores)[kRowTiles][kPieces][4],
                                                   const kernels::BatchParams& params,
                                                   const kernels::BatchRow& tile, int first_key,
                                                   bool full, const KeysThere<8 * kPieces>& there,
                                                   unsigned lane, const RowOf& row_of) {
  constexpr int kColumns = 8 * kPieces;
  const auto positions =
      key_positions<Shape::kInterleaved>(params, tile, first_key + static_cast<int>(lane % 4 * 2));
  const RowBits existing = there.of_lane(lane);
#pragma unroll
  for (int r = 0; r < kRowTiles; ++r) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      RowBits visible(true);
      if (!full) {
        const PackedRow row = row_of(r, half);
        visible = visible_columns<Mask, kColumns>(
            MaskContext<kColumns>{params.mask, nullptr, kTileAllVisible, 0, 0, 0, 0, row.head,
                                  tile.request},
            tile.position + row.query, positions);
        if constexpr (Shape::kRowLimits) {
          visible = visible & limited_columns<kColumns, Shape::kInterleaved>(params, tile, row,
                                                                             first_key, lane);
        }
      }
      hide(scores[r], half, 0, existing & visible);
    }
  }
}

// Finishes the scores of keys that follow one another from `first_key` on. Masking is skipped if
// all keys are there and all queries see them.
template <typename Shape, typename Mask, typename ScoreMod, int kRowTiles, int kPieces,
          typename RowOf>
__device__ __forceinline__ void finish_run_scores(float (&scores)[kRowTiles][kPieces][4],
                                                  const kernels::BatchParams& params,
                                                  const kernels::BatchRow& tile, int first_key,
                                                  const KeysThere<8 * kPieces>& there,
                                                  unsigned lane, const RowOf& row_of) {
  scale_packed_scores<Shape, ScoreMod>(scores, params, tile, first_key, lane, row_of);
  const bool full = tile.runs.template all_see<Shape::kRuns>(first_key, first_key + 8 * kPieces);
  if (full && there.all()) return;
  hide_packed_scores<Shape, Mask>(scores, params, tile, first_key, full, there, lane, row_of);
}

// Finishes the scores of a warp with the keys of a step. row_of(r, half) is the PackedRow of a
// lane's row.
template <typename Shape, typename Mask, typename ScoreMod, int kRowTiles, int kPieces,
          typename RowOf>
__device__ __forceinline__ void finish_packed_scores(float (&scores)[kRowTiles][kPieces][4],
                                                     const kernels::BatchParams& params,
                                                     const kernels::BatchRow& tile,
                                                     const StepKeys<8 * kPieces>& keys,
                                                     unsigned lane, const RowOf& row_of) {
  if constexpr (!Shape::kListed) {
    finish_run_scores<Shape, Mask, ScoreMod>(scores, params, tile, keys.key, keys.there, lane,
                                             row_of);
  } else {
    static_assert(kernels::kBlockGrain == 16, "the keys of two pieces follow one another");
#pragma unroll
    for (int group = 0; group < kPieces / 2; ++group) {
      float part[kRowTiles][2][4];
      const auto each = [&](const auto& take) {
#pragma unroll
        for (int r = 0; r < kRowTiles; ++r) {
#pragma unroll
          for (int i = 0; i < 8; ++i)
            take(part[r][i / 4][i % 4], scores[r][2 * group + i / 4][i % 4]);
        }
      };
      each([](float& to, float from) { to = from; });
      finish_run_scores<Shape, Mask, ScoreMod>(part, params, tile,
                                               __shfl_sync(0xffffffffu, keys.key, group),
                                               keys.there.group(group), lane, row_of);
      each([](float from, float& to) { to = from; });
    }
  }
}

}  // namespace annulus::tile

#endif  // ANNULUS_TILE_PACKED_SCORES_CUH_
