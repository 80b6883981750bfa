// Block-sparse attention forward for sm_80 and newer: cp.async, ldmatrix, mma.sync m16n8k16, online
// softmax in base 2 with fp32 state. One CTA computes M query rows of one head, or with kSplit some
// of their tiles. It loops over the column tiles of its tile row, N keys at a time. Each warp owns
// M / warps rows and exchanges nothing with the others, so barriers only guard shared memory.
//
// Shared memory: Q [M][Dqk], then kStages times K [N][Dqk], then kStages times V [N][Dv], each
// swizzled (tile/swizzle.cuh). O is staged in the warp's own rows of Q.
//
// The pipeline: With one stage, V of a tile is copied while its scores are computed, and K of the
// next tile during its softmax and the product with V: two barriers in each step. With more stages,
// whole tiles are copied kStages - 1 steps ahead, with one barrier in each step. Every turn of the
// loop commits exactly one group of copies, empty or not, because waiting counts groups.
//
// Shape has the constants, Mask the visibility, and ScoreMod a score expression. README.md lists
// what they must define.

#include "params/attention_params.h"
#include "tile/copy.cuh"
#include "tile/general.cuh"
#include "tile/masking.cuh"
#include "tile/multiply.cuh"
#include "tile/position_terms.cuh"
#include "tile/row_io.cuh"
#include "tile/score.cuh"
#include "tile/score_mod.cuh"
#include "tile/segments.cuh"
#include "tile/softmax.cuh"
#include "tile/tile_row.cuh"

namespace annulus::kernels {

template <typename Shape, typename Mask, typename ScoreMod = tile::NoScoreMod>
__global__ void __launch_bounds__(Shape::kWarps * 32, Shape::kResident)
    mma_forward(const __grid_constant__ AttentionParams params) {
  using Element = typename Shape::Element;
  constexpr int kDimQk = Shape::kDimQk;
  constexpr int kDimV = Shape::kDimV;
  constexpr int kRows = Shape::kTileRows;
  constexpr int kColumns = Shape::kTileColumns;
  constexpr int kWarps = Shape::kWarps;
  constexpr int kStages = Shape::kStages;
  constexpr int kThreads = kWarps * 32;
  constexpr auto kScore = static_cast<Score>(Shape::kScore);
  constexpr auto kTileOrder = static_cast<TileOrder>(Shape::kTileOrder);
  constexpr int kDistinctBatches = tile::DistinctBatches<Shape>::kCount;
  using Weighing = tile::Weighing<ScoreMod, kScore>;
  constexpr int kRowTiles = kRows / (kWarps * 16);
  static_assert(kRowTiles * kWarps * 16 == kRows && kRowTiles >= 1,
                "the rows of a tile must be a multiple of 16 for each warp");
  static_assert(kColumns % 16 == 0 && kColumns >= 16 && kColumns <= 128,
                "the columns of a tile must be a multiple of 16 from 16 to 128");
  static_assert(kStages >= 1 && kStages <= 4, "a pipeline has one to four stages");
  static_assert(kDimV <= kDimQk, "O is staged in the rows of Q, so Dv must not exceed Dqk");
  constexpr unsigned kQueryBytes = kRows * tile::Swizzle<kDimQk>::kPitch;
  constexpr unsigned kKeyBytes = kColumns * tile::Swizzle<kDimQk>::kPitch;
  constexpr unsigned kValueBytes = kColumns * tile::Swizzle<kDimV>::kPitch;

  // The CTA's head, batch and tile row, and the warp's rows.
  extern __shared__ __align__(128) unsigned char shared_memory[];
  const unsigned query_tile = ptx::shared_address(shared_memory);
  const unsigned key_tiles = query_tile + kQueryBytes;
  const unsigned value_tiles = key_tiles + kStages * kKeyBytes;
  const unsigned thread = threadIdx.x;
  const unsigned warp = thread / 32;
  const unsigned lane = thread % 32;
  const unsigned head = blockIdx.y;
  const unsigned kv_head = head / static_cast<unsigned>(params.group);
  const long long batch = blockIdx.z;
  const auto row =
      tile::find_tile_row<kTileOrder, kRows, kColumns, Shape::kSplit, kDistinctBatches>(
          params, blockIdx.x, head, batch);
  if (Shape::kSplit && row.row < 0) return;  // an empty segment at the end of a list
  const tile::TilePlace rows = tile::query_place<Shape, kRows>(params, row.row);
  const int first_row = rows.first;
  const int warp_row = first_row + static_cast<int>(warp) * (kRowTiles * 16);

  const tile::TileCopier<kDimQk, kThreads> keys(
      params.k, batch * params.k_batch + kv_head * params.k_head, params.k_row, thread);
  const tile::TileCopier<kDimV, kThreads> values(
      params.v, batch * params.v_batch + kv_head * params.v_head, params.v_row, thread);
  tile::TileWindow<kTileOrder, kStages> window(row, 1 - kStages);
  const auto start_keys = [&](const tile::ColumnTile& at, int stage) {
    keys.template start<kColumns>(key_tiles + stage * kKeyBytes,
                                  tile::key_place<Shape, kColumns>(params, at.column).first,
                                  params.key_begin, params.key_count);
  };
  const auto start_values = [&](const tile::ColumnTile& at, int stage) {
    values.template start<kColumns>(value_tiles + stage * kValueBytes,
                                    tile::key_place<Shape, kColumns>(params, at.column).first,
                                    params.key_begin, params.key_count);
  };

  // Start the first copies. Q is copied even if the row has no tile, because its address is known
  // earlier than the number of tiles, which needs a load. With one stage, the keys of the first
  // tile are copied too. With several stages these copies of Q join the group that the first turn
  // of the loop commits.
  const tile::TileCopier<kDimQk, kThreads> queries(
      params.q, batch * params.q_batch + head * params.q_head, params.q_row, thread);
  queries.template start<kRows>(query_tile, first_row, rows.end);
  if constexpr (kStages == 1) {
    if (row.count > 0) start_keys(window.tile(0), 0);
    ptx::commit_copies();
  }

  // The running state of this warp's rows. A carried state counts once: only the first segment of a
  // split row starts from it.
  tile::RowState<kRowTiles> state;
  float output[kRowTiles][kDimV / 8][4];
  const tile::LaneRows lane_rows{(batch * params.heads + head) * params.seq_q,
                                 warp_row + static_cast<int>(lane / 4), rows.end, lane};
  tile::start_empty(state, output);
  if constexpr (Shape::kCarryIn) {
    if (tile::given<Shape>(params.acc_in) && (!Shape::kSplit || row.begins)) {
      tile::load_state(state, output, params, lane_rows);
    }
  }

  const unsigned query_rows = query_tile + warp * (kRowTiles * 16 * tile::Swizzle<kDimQk>::kPitch);
  tile::Query<kRowTiles, kDimQk, Shape::kQueryInRegisters> query(
      query_rows + tile::LaneOffset<kDimQk>::rows_first(lane));
  const unsigned key_lane = key_tiles + tile::LaneOffset<kDimQk>::columns_first(lane);
  const unsigned value_lane = value_tiles + tile::LaneOffset<kDimV>::rows_first(lane);

  // With several stages the first kStages - 1 turns, with current < 0, only start copies. `stage`
  // is current mod kStages, so tile 0 is in stage 0.
  int stage = kStages == 1 ? 0 : 1;
#pragma unroll 1
  for (int current = 1 - kStages; current < row.count;
       ++current, stage = stage == kStages - 1 ? 0 : stage + 1) {
    const tile::ColumnTile now = window.tile(0);

    // Wait for the tile (with one stage, for its keys). The kStages - 2 youngest groups, which
    // belong to the tiles after it, may still be under way. After the barrier all warps have
    // finished the previous turn, and the buffers that it read are free. So the copies of a later
    // tile are started (with one stage, of this tile's values).
    if (kStages == 1 || current >= 0) {
      ptx::wait_copies<kStages == 1 ? 0 : kStages - 2>();
      __syncthreads();
    }
    if constexpr (kStages == 1) {
      start_values(now, 0);
    } else if (current + kStages - 1 < row.count) {
      const int free_stage = stage == 0 ? kStages - 1 : stage - 1;
      start_keys(window.tile(kStages - 1), free_stage);
      start_values(window.tile(kStages - 1), free_stage);
    }
    ptx::commit_copies();
    const tile::ColumnTile next = window.tile(1);
    window.advance(current);
    if (kStages > 1 && current < 0) continue;
    if (current == 0) query.keep();

    float scores[kRowTiles][kColumns / 8][4];
    tile::multiply_scores<Element, kDimQk, kRowTiles, kColumns>(scores, query,
                                                                key_lane + stage * kKeyBytes);

    // With one stage, the values arrived while the scores were computed. All warps have read the
    // keys, so the keys of the next tile can be copied.
    if constexpr (kStages == 1) {
      ptx::wait_copies<0>();
      __syncthreads();
      if (current + 1 < row.count) start_keys(next, 0);
      ptx::commit_copies();
    }

    // Make scores of the products: scale, terms of position, score expression, mask.
    tile::finish_products<Shape>(scores, params);
    const tile::TilePlace columns = tile::key_place<Shape, kColumns>(params, now.column);
    const int first_column = columns.first;
    if constexpr (Shape::kAlibi || Shape::kBias) {
      static_assert(tile::General<Shape>::kIs || kScore != Score::kPositiveScale,
                    "terms are added to scores that are scaled");
      if (tile::has_terms<Shape>(params.score)) {
        const tile::PositionTerms<Shape::kAlibi, Shape::kBias, tile::General<Shape>::kIs> terms(
            params.score, head);
        const int lane_column = static_cast<int>(lane % 4 * 2);
        if constexpr (tile::reads_positions<Shape>()) {
          terms.add_placed(scores, params.q_positions + first_row,
                           params.k_positions + first_column, lane_rows.first_row - first_row,
                           lane_column);
        } else {
          terms.add(scores, columns.position + lane_column -
                                (rows.position + lane_rows.first_row - first_row));
        }
      }
    }
    if constexpr (ScoreMod::kPresent) {
      static_assert(kScore != Score::kPositiveScale, "an expression takes scores that are scaled");
      const tile::ModifiedScores<ScoreMod> modified(
          params.score, params.first_batch + static_cast<int>(batch), static_cast<int>(head));
      if constexpr (tile::reads_positions<Shape>() && ScoreMod::kPositions) {
        modified.apply_placed(scores, params.q_positions + first_row,
                              params.k_positions + first_column, lane_rows.first_row - first_row,
                              static_cast<int>(lane % 4 * 2));
      } else {
        modified.apply(scores, rows.position + lane_rows.first_row - first_row,
                       columns.position + static_cast<int>(lane % 4 * 2));
      }
    }
    // Only partial tiles and the last tile of a ragged segment are masked.
    const int keys_left = columns.end - first_column;
    if (now.partial || keys_left < kColumns) {
      const tile::LanePlace place = {lane_rows.first_row - first_row,
                                     static_cast<int>(lane % 4 * 2)};
      const tile::MaskContext<kColumns> context{
          params.mask,
          params.tiles.mask_words,
          row.mask(current),
          tile::reads_positions<Shape>() ? 0 : rows.position,
          tile::reads_positions<Shape>() ? 0 : columns.position,
          params.tiles.granule_row_shift,
          params.tiles.granule_column_shift,
          static_cast<int>(head),
          params.first_batch + static_cast<int>(batch)};
      if constexpr (tile::reads_positions<Shape>()) {
        tile::mask_placed_tile<Mask>(scores, context, params.q_positions + first_row,
                                     params.k_positions + first_column, place, now.partial,
                                     keys_left);
      } else {
        tile::mask_tile<Mask>(scores, context, place, now.partial, keys_left);
      }
    }
    float correction[kRowTiles][2];
    tile::online_softmax<Weighing::score()>(
        state, scores, tile::softmax_factor<Shape, Weighing>(params), correction);
    tile::rescale(output, correction);
    tile::multiply_values<Element, kDimV, kRowTiles, kColumns>(output, scores,
                                                               value_lane + stage * kValueBytes);
  }

  // Write the results. O is staged in the warp's own rows of Q, which other threads have copied. If
  // there was a tile, the loop had a barrier after that copy; otherwise it is needed here.
  ptx::wait_copies<0>();
  if (row.count == 0) __syncthreads();
  tile::complete_sums(state);
  if constexpr (Shape::kSplit) {
    if (row.slot >= 0) {
      tile::LaneRows in_slot = lane_rows;
      const tile::StateOut to = tile::slot_of<kRows>(
          params.split, row.slot, batch * params.heads + head, first_row, &in_slot);
      tile::store_state(state, output, to, in_slot);
      return;
    }
  }
  if (Shape::kCarryOut && tile::given<Shape>(params.acc_out)) {
    tile::store_state(state, output, tile::StateOut{params.acc_out, params.m_out, params.l_out},
                      lane_rows);
    return;
  }
  if constexpr (Shape::kSinkLogit) {
    if (tile::given<Shape>(params.score.sinks)) {
      tile::add_sink(state, output,
                     params.score.sinks[head % static_cast<unsigned>(params.score.sink_count)]);
    }
  }
  tile::store_lse(state, params, lane_rows);
  tile::store_output<Element>(
      state, output,
      static_cast<char*>(params.o) +
          (batch * params.o_batch + head * params.o_head) * tile::kElementBytes,
      params.o_row * tile::kElementBytes, query_rows, warp_row, rows.end, lane);
}

}  // namespace annulus::kernels
