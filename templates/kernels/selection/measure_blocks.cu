// Measures how much attention each listed block receives: for every query, it sums the
// probabilities of its scores relative to its LSE, block by block. It loops over the tiles like
// mma_forward, but without values. One CTA takes M rows of one head. Sums are integers in units of
// 2^-32 of a query's attention. Integer addition does not depend on the order, so CTAs that share a
// block always give the same bits.
//
//   measure_blocks<Shape, Mask, ScoreMod><<<(row tiles, H, B), 32 * kWarps, shared bytes>>>(
//       AttentionParams, MeasureParams)
//
// Shared memory: Q [M][Dqk], then K [N][Dqk]. Shape, Mask and ScoreMod are the same as in
// mma_forward; kStages, kDimV, kCarryIn and kCarryOut are not used. AttentionParams::lse is an
// input here.

#include "params/importance_params.h"
#include "ptx/async_copy.cuh"
#include "ptx/memory.cuh"
#include "tile/bits.cuh"
#include "tile/copy.cuh"
#include "tile/masking.cuh"
#include "tile/multiply.cuh"
#include "tile/position_terms.cuh"
#include "tile/score.cuh"
#include "tile/score_mod.cuh"
#include "tile/softmax.cuh"
#include "tile/tile_row.cuh"

namespace annulus::kernels {

template <typename Shape, typename Mask, typename ScoreMod = tile::NoScoreMod>
__global__ void __launch_bounds__(Shape::kWarps * 32)
    measure_blocks(const __grid_constant__ AttentionParams params,
                   const __grid_constant__ MeasureParams measure) {
  using Element = typename Shape::Element;
  constexpr int kDim = Shape::kDimQk;
  constexpr int kRows = Shape::kTileRows;
  constexpr int kColumns = Shape::kTileColumns;
  constexpr int kThreads = Shape::kWarps * 32;
  constexpr int kRowTiles = kRows / (Shape::kWarps * 16);
  constexpr auto kScore = static_cast<Score>(Shape::kScore);
  constexpr auto kTileOrder = static_cast<TileOrder>(Shape::kTileOrder);
  using Weighing = tile::Weighing<ScoreMod, kScore>;
  static_assert(static_cast<Positions>(Shape::kPositions) == Positions::kOneSegment,
                "blocks are those of a whole tensor");
  static_assert(kTileOrder == TileOrder::kList, "which blocks are kept is a list");

  extern __shared__ __align__(128) unsigned char shared_memory[];
  const unsigned query_tile = ptx::shared_address(shared_memory);
  const unsigned key_tile = query_tile + kRows * tile::Swizzle<kDim>::kPitch;
  const unsigned thread = threadIdx.x;
  const unsigned warp = thread / 32;
  const unsigned lane = thread % 32;
  const unsigned head = blockIdx.y;
  const long long batch = blockIdx.z;
  const auto row =
      tile::find_tile_row<kTileOrder, kRows, kColumns>(params, blockIdx.x, head, batch);
  const int first_row = row.row * kRows;
  const int warp_row = first_row + static_cast<int>(warp) * (kRowTiles * 16);
  const int lane_row = warp_row + static_cast<int>(lane / 4);
  const long long list = batch * params.heads + head;
  unsigned long long* mass = measure.mass + list * measure.rows * measure.columns;

  const tile::TileCopier<kDim, kThreads> keys(
      params.k, batch * params.k_batch + head / static_cast<unsigned>(params.group) * params.k_head,
      params.k_row, thread);
  const tile::TileCopier<kDim, kThreads> queries(
      params.q, batch * params.q_batch + head * params.q_head, params.q_row, thread);
  queries.template start<kRows>(query_tile, first_row, params.seq_q);
  ptx::commit_copies();

  // The base-2 LSE of the lane's rows. Rows that do not exist and rows that saw nothing get +inf,
  // which makes every probability 0.
  float base[kRowTiles][2];
#pragma unroll
  for (int r = 0; r < kRowTiles; ++r) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int at = lane_row + 16 * r + 8 * half;
      const float lse = at < params.seq_q
                            ? params.lse[list * params.seq_q + at] * measure.lse_factor
                            : tile::minus_infinity();
      base[r][half] = lse == tile::minus_infinity() ? -tile::minus_infinity() : lse;
    }
  }
  const tile::Query<kRowTiles, kDim, false> query(
      query_tile + warp * (kRowTiles * 16 * tile::Swizzle<kDim>::kPitch) +
      tile::LaneOffset<kDim>::rows_first(lane));

#pragma unroll 1
  for (int current = 0; current < row.count; ++current) {
    const tile::ColumnTile entry = row.tile(current);
    const int first_column = entry.column * kColumns;
    // There is one buffer, so all warps must have read the last tile before the next copy.
    __syncthreads();
    keys.template start<kColumns>(key_tile, first_column, params.key_begin, params.key_count);
    ptx::commit_copies();
    ptx::wait_copies<0>();
    __syncthreads();
    float scores[kRowTiles][kColumns / 8][4];
    tile::multiply_scores<Element, kDim, kRowTiles, kColumns>(
        scores, query, key_tile + tile::LaneOffset<kDim>::columns_first(lane));
    tile::finish_scores<kScore>(scores, params.scale, params.softcap);
    if constexpr (Shape::kAlibi || Shape::kBias) {
      const tile::PositionTerms<Shape::kAlibi, Shape::kBias> terms(params.score, head);
      terms.add(scores, params.k_position + first_column + static_cast<int>(lane % 4 * 2) -
                            (params.q_position + lane_row));
    }
    if constexpr (ScoreMod::kPresent) {
      const tile::ModifiedScores<ScoreMod> modified(
          params.score, params.first_batch + static_cast<int>(batch), static_cast<int>(head));
      modified.apply(scores, params.q_position + lane_row,
                     params.k_position + first_column + static_cast<int>(lane % 4 * 2));
    }
    const int keys_left = params.seq_k - first_column;
    if (entry.partial || keys_left < kColumns) {
      const tile::MaskContext<kColumns> context{params.mask,
                                                params.tiles.mask_words,
                                                row.mask(current),
                                                params.q_position + first_row,
                                                params.k_position + first_column,
                                                params.tiles.granule_row_shift,
                                                params.tiles.granule_column_shift,
                                                static_cast<int>(head),
                                                params.first_batch + static_cast<int>(batch)};
      const tile::LanePlace place = {lane_row - first_row, static_cast<int>(lane % 4 * 2)};
      tile::mask_tile<Mask>(scores, context, place, entry.partial, keys_left);
    }

    // Blocks have multiples of 8 rows and columns, as a tracker checks (src/selection/tracker.cc),
    // so each 8 x 8 piece of scores lies in one block. Neighbouring pieces of a block are summed
    // before the atomic addition.
#pragma unroll
    for (int r = 0; r < kRowTiles; ++r) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const int block_row = (warp_row + 16 * r + 8 * half) / measure.block_rows;
        float sum = 0.0f;
#pragma unroll
        for (int c = 0; c < kColumns / 8; ++c) {
#pragma unroll
          for (int i = 2 * half; i < 2 * half + 2; ++i) {
            const float score = scores[r][c][i];
            sum += Weighing::score() == Score::kPositiveScale
                       ? ptx::exp2(fmaf(score, Weighing::factor(params.scale), -base[r][half]))
                       : ptx::exp2(score - base[r][half]);
          }
          const int column = first_column + 8 * c;
          const int block_column = column / measure.block_columns;
          const bool ends =
              c == kColumns / 8 - 1 || (column + 8) / measure.block_columns != block_column;
          if (!ends) continue;
          const float total = tile::warp_sum(sum);
          sum = 0.0f;
          // The comparison drops NaN, which counts as no attention. A correct share is at most 8: 1
          // for each of the piece's rows. The bound is needed if an LSE belongs to another run and
          // is too small. With at most 2^16, a block's 64-bit sum does not wrap before 2^16
          // additions. Pieces beyond the last block row or column are rows or keys that do not
          // exist.
          if (lane == 0 && total > 0.0f && block_row < measure.rows &&
              block_column < measure.columns) {
            const float share = total < 65536.0f ? total : 65536.0f;
            atomicAdd(mass + static_cast<long long>(block_row) * measure.columns + block_column,
                      __float2ull_rn(share * 4294967296.0f));
          }
        }
      }
    }
  }
  // A row without tiles reaches this point while its copies of Q are under way, and a thread must
  // not end before its copies have ended.
  ptx::wait_copies<0>();
}

}  // namespace annulus::kernels
