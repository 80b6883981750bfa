// Attention of many queries, for batches of requests whose lengths and pages are in device memory
// (params/batch_params.h), for sm_80 and newer: chunks of prompts. It computes like mma_forward: a
// CTA has M rows of (query, head of the group), and each warp has M / warps of these rows. All
// warps read the same tiles of N keys, which are copied kStages - 1 steps ahead. Each step has one
// barrier.
//
// CTAs are persistent: CTA i of n takes works i, i + n, ... of the list of prepare_batch, in which
// the longest works come first.
//
// Shared memory: Q [M][Dqk], then kStages times K [N][Dqk], then kStages times V [N][Dv], all
// swizzled. At the end of a work this memory stages the output: each warp has 16 rows of fp32.
//
// Shape has the constants, Mask the visibility, and ScoreMod a score expression. README.md lists
// what they must define.

#include "params/batch_params.h"
#include "tile/batch_row.cuh"
#include "tile/key_window.cuh"
#include "tile/multiply.cuh"
#include "tile/packed_scores.cuh"
#include "tile/row_copier.cuh"
#include "tile/row_io.cuh"
#include "tile/score_mod.cuh"
#include "tile/softmax.cuh"

namespace annulus::kernels {

template <typename Shape, typename Mask, typename ScoreMod = tile::NoScoreMod>
__global__ void __launch_bounds__(Shape::kWarps * 32, Shape::kResident)
    chunk_forward(const __grid_constant__ BatchParams params) {
  using Element = typename Shape::Element;
  constexpr int kDimQk = Shape::kDimQk;
  constexpr int kDimV = Shape::kDimV;
  constexpr int kRows = Shape::kTileRows;
  constexpr int kColumns = Shape::kTileColumns;
  constexpr int kWarps = Shape::kWarps;
  constexpr int kThreads = 32 * kWarps;
  constexpr int kStages = Shape::kStages;
  constexpr int kRuns = Shape::kRuns;
  constexpr bool kListed = Shape::kListed;
  constexpr auto kPages = static_cast<Pages>(Shape::kPages);
  constexpr auto kScore = static_cast<Score>(Shape::kScore);
  constexpr int kRowTiles = kRows / (kWarps * 16);
  constexpr int kPieces = kColumns / 8;
  using Weighing = tile::Weighing<ScoreMod, kScore>;
  using QueryLayout = tile::Swizzle<kDimQk>;
  static_assert((kWarps == 4 || kWarps == 8) && kRowTiles * kWarps * 16 == kRows &&
                    (kRowTiles == 1 || kRowTiles == 2),
                "four or eight warps own 16 or 32 rows each");
  static_assert(kColumns % 16 == 0 && kColumns >= 16 && kColumns <= 128,
                "the columns of a tile must be a multiple of 16 from 16 to 128");
  static_assert(kStages >= 2 && kStages <= 4, "a pipeline has two to four stages");
  static_assert(kRuns >= 1 && kRuns <= kMaxRuns, "keys are one run or a few");
  constexpr unsigned kQueryBytes = kRows * QueryLayout::kPitch;
  constexpr unsigned kKeyBytes = kColumns * tile::Swizzle<kDimQk>::kPitch;
  constexpr unsigned kValueBytes = kColumns * tile::Swizzle<kDimV>::kPitch;
  // A row of the staging has 8 floats more than it needs, so that neighbouring rows begin in
  // different banks.
  constexpr unsigned kAccPitch = (kDimV + 8) * 4;
  static_assert(kWarps * 16 * kAccPitch <= kQueryBytes + kStages * (kKeyBytes + kValueBytes),
                "16 rows of output of each warp must fit in shared memory");

  extern __shared__ __align__(128) unsigned char shared_memory[];
  const unsigned query_tile = ptx::shared_address(shared_memory);
  const unsigned key_tiles = query_tile + kQueryBytes;
  const unsigned value_tiles = key_tiles + kStages * kKeyBytes;
  const unsigned thread = threadIdx.x;
  const unsigned warp = thread / 32;
  const unsigned lane = thread % 32;
  const int warp_row = static_cast<int>(warp) * (kRowTiles * 16);
  const BatchHeader& header = *params.tables.header;
  const KeyPlaces places = header.places;
  const int works = header.works * params.row_columns;

#pragma unroll 1
  for (int at = static_cast<int>(blockIdx.x); at < works; at += static_cast<int>(gridDim.x)) {
    const BatchWork work = params.tables.works[at / params.row_columns];
    // It is in shared memory, because its numbers would take registers that the output needs.
    __shared__ BatchRow row;
    __shared__ tile::PartTiles<kRuns, kColumns, kListed> tiles;
    if (thread < sizeof(BatchRow) / 4) {
      reinterpret_cast<int*>(&row)[thread] =
          reinterpret_cast<const int*>(params.tables.rows + work.row)[thread];
    }
    __syncthreads();
    const int column = row.column + at % params.row_columns;
    const int first_tile = work.part * params.part_tiles;
    if (thread == 0)
      tiles = tile::PartTiles<kRuns, kColumns, kListed>(params, row, column, first_tile);
    __syncthreads();
    const int left = tile::has_rows<Shape>(params, places, row) ? row.tiles - first_tile : 0;
    const int count = left < params.part_tiles ? left : params.part_tiles;

    tile::start_packed_query<kDimQk, kRows, kThreads>(params, row, column, query_tile, thread);
    const tile::HeadRows head = tile::head_rows<kPages>(params, places, row.request, column);
    const tile::RowCopier<kDimQk, kColumns, kThreads, kPages, kListed> keys(
        head.k, params.k_row * tile::kElementBytes, thread);
    const tile::RowCopier<kDimV, kColumns, kThreads, kPages, kListed> values(
        head.v, params.v_row * tile::kElementBytes, thread);
    const auto key_of = [&](int i, int place) { return tiles.key(i, place); };
    tile::KeyWindow<kColumns, kRuns, kPages, kListed, decltype(key_of)> window(params, places, row,
                                                                               key_of, count, lane);

    tile::RowState<kRowTiles> state;
    float output[kRowTiles][kDimV / 8][4];
    tile::start_empty(state, output);
    tile::Query<kRowTiles, kDimQk, Shape::kQueryInRegisters> query(
        query_tile + warp_row * QueryLayout::kPitch + tile::LaneOffset<kDimQk>::rows_first(lane));
    const unsigned key_lane = key_tiles + tile::LaneOffset<kDimQk>::columns_first(lane);
    const unsigned value_lane = value_tiles + tile::LaneOffset<kDimV>::rows_first(lane);

    // The first kStages - 1 turns, with current < 0, only start copies, so tile 0 is in stage 0.
    // `under_way` has the keys of the tiles whose copies were started.
    using Keys = tile::StepKeys<kColumns>;
    Keys under_way[kStages];
#pragma unroll
    for (int i = 0; i < kStages; ++i) under_way[i] = Keys::none();
    int stage = 1;
#pragma unroll 1
    for (int current = 1 - kStages; current < count;
         ++current, stage = stage == kStages - 1 ? 0 : stage + 1) {
      if (current >= 0) {
        ptx::wait_copies<kStages - 2>();
        __syncthreads();
      }
      // All warps find the same keys.
      window.begin_step();
      under_way[kStages - 1] = Keys::none();
      if (window.any()) {
        const int free_stage = stage == 0 ? kStages - 1 : stage - 1;
        under_way[kStages - 1] = window.keys();
        keys.start(key_tiles + free_stage * kKeyBytes, under_way[kStages - 1].there,
                   [&](int look, int unit) { return window.k_offset(look, unit); });
        values.start(value_tiles + free_stage * kValueBytes, under_way[kStages - 1].there,
                     [&](int look, int unit) { return window.v_offset(look, unit); });
      }
      ptx::commit_copies();
      window.end_step();
      const Keys present = under_way[0];
#pragma unroll
      for (int i = 0; i < kStages - 1; ++i) under_way[i] = under_way[i + 1];
      if (current < 0) continue;
      if (current == 0) query.keep();
      if (!present.there.any()) continue;

      float scores[kRowTiles][kPieces][4];
      tile::multiply_scores<Element, kDimQk, kRowTiles, kColumns>(scores, query,
                                                                  key_lane + stage * kKeyBytes);
      tile::finish_packed_scores<Shape, Mask, ScoreMod>(
          scores, params, row, present, lane, [&](int r, int half) {
            int packed = warp_row + static_cast<int>(lane / 4) + 16 * r + 8 * half;
            // The value is opaque, so that no row's query and head stay in registers during all
            // tiles.
            ptx::make_opaque(packed);
            return tile::PackedRow(params, row, column, packed);
          });
      float correction[kRowTiles][2];
      tile::online_softmax<Weighing::score()>(state, scores, Weighing::factor(params.scale),
                                              correction);
      tile::rescale(output, correction);
      tile::multiply_values<Element, kDimV, kRowTiles, kColumns>(output, scores,
                                                                 value_lane + stage * kValueBytes);
    }

    // Each warp writes 16 of its rows at a time through its part of shared memory, after all warps
    // have read the last tile.
    ptx::wait_copies<0>();
    __syncthreads();
    tile::complete_sums(state);
    const unsigned staging = query_tile + warp * (16 * kAccPitch);
#pragma unroll
    for (int r = 0; r < kRowTiles; ++r) {
      tile::stage_rows(state, output, r, staging, kAccPitch, lane);
      __syncwarp();
      // The lanes that computed a row have its m and l; eight lanes write it.
#pragma unroll
      for (int pass = 0; pass < 16 * kRowThreads / 32; ++pass) {
        const int in_tile = pass * (32 / kRowThreads) + static_cast<int>(lane / kRowThreads);
        const int from_lane = in_tile % 8 * 4;
        tile::JoinedRow joined;
        const bool upper = in_tile >= 8;
        const float m0 = __shfl_sync(0xffffffffu, state.row_max[r][0], from_lane);
        const float m1 = __shfl_sync(0xffffffffu, state.row_max[r][1], from_lane);
        const float l0 = __shfl_sync(0xffffffffu, state.sum[r][0], from_lane);
        const float l1 = __shfl_sync(0xffffffffu, state.sum[r][1], from_lane);
        joined.row_max = upper ? m1 : m0;
        joined.sum = upper ? l1 : l0;
        if (joined.sum == 0.0f) joined.row_max = tile::minus_infinity();
        const tile::PackedRow here(params, row, column, warp_row + 16 * r + in_tile);
        if (!here.exists) continue;
        tile::leave_row<Shape>(params, row, work, column, here, warp_row + 16 * r + in_tile,
                               static_cast<int>(lane % kRowThreads), joined,
                               [&](int first, float(&acc)[4]) {
                                 tile::load_staged(acc, staging + in_tile * kAccPitch + first * 4);
                               });
      }
      __syncwarp();
    }
    // Until here, warps read the staging.
    __syncthreads();
  }
}

}  // namespace annulus::kernels
