#ifndef ANNULUS_KERNELS_WGMMA_FINISH_BLOCK_CUH_
#define ANNULUS_KERNELS_WGMMA_FINISH_BLOCK_CUH_

// The steps between the scaling of scores and softmax: the terms of position and the score
// expression are applied. Then the scores of keys that the query does not see become -inf.

#include "kernels/wgmma/work.cuh"
#include "tile/general.cuh"
#include "tile/masking.cuh"
#include "tile/position_terms.cuh"
#include "tile/score.cuh"
#include "tile/score_mod.cuh"
#include "tile/segments.cuh"

namespace annulus::kernels {

// Finishes the scores of `now`, which is tile `index` of the row. A last step may lack a tile
// (index == row.count); it holds a copy of the row's last tile, and none of its keys is seen.
template <typename Shape, typename Mask, typename ScoreMod, int kPieces, typename Row>
__device__ __forceinline__ void finish_block(const AttentionParams& params,
                                             float (&scores)[1][kPieces][4], const Row& row,
                                             int index, tile::ColumnTile now, int batch, int head,
                                             tile::LanePlace lane) {
  constexpr int kBlocks = Shape::kBlocks;
  constexpr int kBlockColumns = Shape::kColumns / kBlocks;
  constexpr int kRows = rows_of_work<Shape>();
  const bool exists = kBlocks == 1 || index < row.count;
  const int entry = exists ? index : row.count - 1;
  // Positions that are read row by row are padded to whole tiles, and such a kernel has no cluster
  // of tile rows (attention/plan/group.cc), whose last row may be after the padding.
  const tile::TilePlace columns = tile::key_place<Shape, kBlockColumns>(params, now.column);
  const tile::TilePlace rows = tile::query_place<Shape, kRows>(params, row.row);
  if constexpr (Shape::kAlibi || Shape::kBias) {
    static_assert(
        tile::General<Shape>::kIs || static_cast<Score>(Shape::kScore) != Score::kPositiveScale,
        "terms are added to scores that are scaled");
    if (tile::has_terms<Shape>(params.score)) {
      const tile::PositionTerms<Shape::kAlibi, Shape::kBias, tile::General<Shape>::kIs> terms(
          params.score, static_cast<unsigned>(head));
      if constexpr (tile::reads_positions<Shape>()) {
        terms.add_placed(scores, params.q_positions + rows.first,
                         params.k_positions + columns.first, lane.row, lane.column);
      } else {
        terms.add(scores, columns.position + lane.column - (rows.position + lane.row));
      }
    }
  }
  if constexpr (ScoreMod::kPresent) {
    static_assert(static_cast<Score>(Shape::kScore) != Score::kPositiveScale,
                  "an expression takes scores that are scaled");
    const tile::ModifiedScores<ScoreMod> modified(params.score, params.first_batch + batch, head);
    if constexpr (tile::reads_positions<Shape>() && ScoreMod::kPositions) {
      modified.apply_placed(scores, params.q_positions + rows.first,
                            params.k_positions + columns.first, lane.row, lane.column);
    } else {
      modified.apply(scores, rows.position + lane.row, columns.position + lane.column);
    }
  }
  // A tile that does not exist is hidden like a tile without keys, and its mask is not evaluated. A
  // full tile within its segment needs nothing.
  const int keys_left = exists ? columns.end - columns.first : 0;
  const bool partial = exists && now.partial;
  if (partial || keys_left < kBlockColumns) {
    const tile::MaskContext<kBlockColumns> context{
        params.mask,
        params.tiles.mask_words,
        row.mask(entry),
        tile::reads_positions<Shape>() ? 0 : rows.position,
        tile::reads_positions<Shape>() ? 0 : columns.position,
        params.tiles.granule_row_shift,
        params.tiles.granule_column_shift,
        head,
        params.first_batch + batch};
    if constexpr (tile::reads_positions<Shape>()) {
      tile::mask_placed_tile<Mask>(scores, context, params.q_positions + rows.first,
                                   params.k_positions + columns.first, lane, partial, keys_left);
    } else {
      tile::mask_tile<Mask>(scores, context, lane, partial, keys_left);
    }
  }
}

}  // namespace annulus::kernels

#endif  // ANNULUS_KERNELS_WGMMA_FINISH_BLOCK_CUH_
