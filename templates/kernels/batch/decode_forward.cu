// Attention of few queries over many keys, for batches of requests whose lengths and pages are in
// device memory (params/batch_params.h), for sm_80 and newer. The time is the time of reading K and
// V. Each of their bytes is read once for up to kPackedRows rows: the heads of a group, of one
// query or of several.
//
// CTAs are persistent: CTA i of n takes works i, i + n, ... of the list of prepare_batch, in which
// the longest works come first. A work is a part of the keys of a tile of rows, for the heads of
// one column. Each warp takes kKeys keys of each tile of keys, with the same rows of Q as the other
// warps, and has buffers of its own. Until the part ends, no warp waits for another.
//
//   warp w, step i    wait for keys i | keys i + kStages - 1 on their way, whose pages were looked
//                     up a step ago | look pages up for the next | scores, softmax, P V
//
// At the end the states of the warps are joined in the order of the warps, through their buffers.
// combine_parts joins the results of parts.
//
// Shared memory: Q [kPackedRows][Dqk], then for each warp kStages times K [kKeys][Dqk] and V
// [kKeys][Dv], all swizzled, then m and l of each warp's rows.
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
    decode_forward(const __grid_constant__ BatchParams params) {
  using Element = typename Shape::Element;
  constexpr int kDimQk = Shape::kDimQk;
  constexpr int kDimV = Shape::kDimV;
  constexpr int kWarps = Shape::kWarps;
  constexpr int kThreads = 32 * kWarps;
  constexpr int kColumns = Shape::kTileColumns;
  constexpr int kKeys = kColumns / kWarps;
  constexpr int kStages = Shape::kStages;
  constexpr int kRuns = Shape::kRuns;
  constexpr bool kListed = Shape::kListed;
  constexpr auto kPages = static_cast<Pages>(Shape::kPages);
  constexpr auto kScore = static_cast<Score>(Shape::kScore);
  using Weighing = tile::Weighing<ScoreMod, kScore>;
  using QueryLayout = tile::Swizzle<kDimQk>;
  static_assert(Shape::kTileRows == kPackedRows, "all warps have the same 16 rows");
  static_assert(kKeys * kWarps == kColumns && (kKeys == 16 || kKeys == 32),
                "a warp takes 16 or 32 keys at a time");
  static_assert(kStages >= 2 && kStages <= 4, "a pipeline has two to four stages");
  static_assert(kWarps == 4, "eight threads to each of 16 rows write what a part leaves");
  static_assert(kRuns >= 1 && kRuns <= kMaxRuns, "keys are one run or a few");
  constexpr unsigned kQueryBytes = kPackedRows * QueryLayout::kPitch;
  constexpr unsigned kKeyBytes = kKeys * tile::Swizzle<kDimQk>::kPitch;
  constexpr unsigned kValueBytes = kKeys * tile::Swizzle<kDimV>::kPitch;
  constexpr unsigned kStageBytes = kKeyBytes + kValueBytes;
  // A row of a warp's acc has 8 floats more than it needs, so that neighbouring rows begin in
  // different banks.
  constexpr unsigned kAccPitch = (kDimV + 8) * 4;
  static_assert(kPackedRows * kAccPitch <= kStages * kStageBytes,
                "the output of a warp must fit its buffers");

  extern __shared__ __align__(128) unsigned char shared_memory[];
  const unsigned query_tile = ptx::shared_address(shared_memory);
  const unsigned thread = threadIdx.x;
  const unsigned warp = thread / 32;
  const unsigned lane = thread % 32;
  const unsigned stages = query_tile + kQueryBytes;
  const unsigned mine = stages + warp * (kStages * kStageBytes);
  float* const row_states =
      reinterpret_cast<float*>(shared_memory + kQueryBytes + kWarps * kStages * kStageBytes);
  const BatchHeader& header = *params.tables.header;
  const KeyPlaces places = header.places;
  const int works = header.works * params.row_columns;

#pragma unroll 1
  for (int at = static_cast<int>(blockIdx.x); at < works; at += static_cast<int>(gridDim.x)) {
    const BatchWork work = params.tables.works[at / params.row_columns];
    const BatchRow row = params.tables.rows[work.row];
    const int column = row.column + at % params.row_columns;
    const int first_tile = work.part * params.part_tiles;
    const int left = tile::has_rows<Shape>(params, places, row) ? row.tiles - first_tile : 0;
    const int count = left < params.part_tiles ? left : params.part_tiles;

    tile::start_packed_query<kDimQk, kPackedRows, kThreads>(params, row, column, query_tile,
                                                            thread);
    const tile::HeadRows head = tile::head_rows<kPages>(params, places, row.request, column);
    const tile::RowCopier<kDimQk, kKeys, 32, kPages, kListed> keys(
        head.k, params.k_row * tile::kElementBytes, lane);
    const tile::RowCopier<kDimV, kKeys, 32, kPages, kListed> values(
        head.v, params.v_row * tile::kElementBytes, lane);
    const tile::PartTiles<kRuns, kColumns, kListed> tiles(params, row, column, first_tile);
    const auto key_of = [&](int i, int place) {
      return tiles.key(i, static_cast<int>(warp) * kKeys + place);
    };
    tile::KeyWindow<kKeys, kRuns, kPages, kListed, decltype(key_of)> window(params, places, row,
                                                                            key_of, count, lane);

    // The lane's two rows.
    const tile::PackedRow rows[2] = {
        tile::PackedRow(params, row, column, static_cast<int>(lane / 4)),
        tile::PackedRow(params, row, column, static_cast<int>(lane / 4) + 8)};
    tile::RowState<1> state;
    float output[1][kDimV / 8][4];
    tile::start_empty(state, output);
    tile::Query<1, kDimQk, Shape::kQueryInRegisters> query(
        query_tile + tile::LaneOffset<kDimQk>::rows_first(lane));
    int key_lane = static_cast<int>(mine + tile::LaneOffset<kDimQk>::columns_first(lane));
    int value_lane = static_cast<int>(mine + kKeyBytes + tile::LaneOffset<kDimV>::rows_first(lane));
    // They are opaque, so that they are not computed again in each step.
    ptx::make_opaque(key_lane);
    ptx::make_opaque(value_lane);

    // The first kStages - 1 turns, with step < 0, only start copies, so step 0 is in stage 0.
    // `under_way` has the keys of the steps whose copies were started.
    using Keys = tile::StepKeys<kKeys>;
    Keys under_way[kStages];
#pragma unroll
    for (int i = 0; i < kStages; ++i) under_way[i] = Keys::none();
    unsigned stage = kStageBytes;
#pragma unroll 1
    for (int step = 1 - kStages; step < count;
         ++step, stage = stage == (kStages - 1) * kStageBytes ? 0 : stage + kStageBytes) {
      if (step >= 0) {
        ptx::wait_copies<kStages - 2>();
        __syncwarp();
      }
      window.begin_step();
      under_way[kStages - 1] = Keys::none();
      if (window.any()) {
        const unsigned to = mine + (stage == 0 ? (kStages - 1) * kStageBytes : stage - kStageBytes);
        under_way[kStages - 1] = window.keys();
        keys.start(to, under_way[kStages - 1].there,
                   [&](int look, int unit) { return window.k_offset(look, unit); });
        values.start(to + kKeyBytes, under_way[kStages - 1].there,
                     [&](int look, int unit) { return window.v_offset(look, unit); });
      }
      ptx::commit_copies();
      window.end_step();
      const Keys present = under_way[0];
#pragma unroll
      for (int i = 0; i < kStages - 1; ++i) under_way[i] = under_way[i + 1];
      if (step < 0) continue;
      if (step == 0) {
        // Q has arrived with the first step, and all warps have copied it.
        __syncthreads();
        query.keep();
      }
      if (!present.there.any()) continue;

      float scores[1][kKeys / 8][4];
      tile::multiply_scores<Element, kDimQk, 1, kKeys>(scores, query,
                                                       static_cast<unsigned>(key_lane) + stage);
      tile::finish_packed_scores<Shape, Mask, ScoreMod>(scores, params, row, present, lane,
                                                        [&](int, int half) { return rows[half]; });
      float correction[1][2];
      tile::online_softmax<Weighing::score()>(state, scores, Weighing::factor(params.scale),
                                              correction);
      tile::rescale_moved(output, correction);
      tile::multiply_values<Element, kDimV, 1, kKeys>(output, scores,
                                                      static_cast<unsigned>(value_lane) + stage);
    }

    // The warp's state is written to its own buffers, into which nothing is copied any more.
    ptx::wait_copies<0>();
    __syncwarp();
    tile::complete_sums(state);
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      if (lane % 4 != 0) continue;
      float* const to = row_states + (warp * kPackedRows + lane / 4 + 8 * half) * 2;
      to[0] = tile::is_empty(state, 0, half) ? tile::minus_infinity() : state.row_max[0][half];
      to[1] = state.sum[0][half];
    }
    tile::stage_rows(state, output, 0, mine, kAccPitch, lane);
    __syncthreads();

    const int packed = static_cast<int>(thread / tile::kRowThreads);
    const int of_row = static_cast<int>(thread % tile::kRowThreads);
    const tile::PackedRow here(params, row, column, packed);
    if (here.exists) {
      const auto each_state = [&](const auto& take) {
#pragma unroll
        for (int w = 0; w < kWarps; ++w) {
          const float* const from = row_states + (w * kPackedRows + packed) * 2;
          take(from[0], from[1]);
        }
      };
      const tile::JoinedRow joined = tile::join(each_state);
      float weights[kWarps];
#pragma unroll
      for (int w = 0; w < kWarps; ++w) {
        weights[w] = joined.weight(row_states[(w * kPackedRows + packed) * 2]);
      }
      const unsigned staged = stages + packed * kAccPitch;
      const auto columns = [&](int first, float(&acc)[4]) {
#pragma unroll
        for (int i = 0; i < 4; ++i) acc[i] = 0.0f;
#pragma unroll
        for (int w = 0; w < kWarps; ++w) {
          float of_warp[4];
          tile::load_staged(of_warp, staged + w * (kStages * kStageBytes) + first * 4);
#pragma unroll
          for (int i = 0; i < 4; ++i) acc[i] += weights[w] * of_warp[i];
        }
      };
      tile::leave_row<Shape>(params, row, work, column, here, packed, of_row, joined, columns);
    }
    // Until here, warps read the buffers.
    __syncthreads();
  }
}

}  // namespace annulus::kernels
