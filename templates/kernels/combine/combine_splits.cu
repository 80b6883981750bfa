// Joins the states of tile rows that several CTAs computed in parts (split-KV, Shape::kSplit), in
// the order of their tiles. It writes the same results as for a whole row: O and LSE, or the state.
// A warp computes one query row, and its lanes divide the head dim. It is launched after the
// attention kernel, on the same stream.
//
//   combine_splits<Shape><<<(merged rows x M / kMergeWarps, H, B), 32 kMergeWarps>>>(
//       AttentionParams)
//
// Shape has the constants; README.md lists which it must define.

#include "params/attention_params.h"
#include "ptx/memory.cuh"
#include "tile/element.cuh"
#include "tile/general.cuh"
#include "tile/softmax.cuh"
#include "tile/tile_row.cuh"

namespace annulus::kernels {

template <typename Shape>
__global__ void __launch_bounds__(32 * kMergeWarps)
    combine_splits(const __grid_constant__ AttentionParams params) {
  constexpr int kDim = Shape::kDimV;
  // Pairs of columns of a lane. 32 lanes take 64 columns at a time. If the head dim is an odd
  // multiple of 32, the upper half of the lanes has one pair less.
  constexpr int kPairs = (kDim + 63) / 64;
  constexpr int kBlocks = Shape::kTileRows / kMergeWarps;
  static_assert(kBlocks * kMergeWarps == Shape::kTileRows, "warps share a tile row evenly");
  const SplitParams& split = params.split;
  const int lane = static_cast<int>(threadIdx.x % 32);
  const int head = static_cast<int>(blockIdx.y);
  const long long batch = blockIdx.z;
  const long long list = tile::list_of<tile::DistinctBatches<Shape>::kCount>(
      params, static_cast<unsigned>(head), batch);
  const MergedRow merged =
      split.merged[list * split.merged_count + static_cast<int>(blockIdx.x) / kBlocks];
  const int in_tile =
      static_cast<int>(blockIdx.x) % kBlocks * kMergeWarps + static_cast<int>(threadIdx.x / 32);
  const int row = merged.row * Shape::kTileRows + in_tile;
  // A list with fewer split rows than other lists ends with entries without slots.
  if (merged.slots == 0 || row >= params.seq_q) return;
  const long long row_of_all = (batch * params.heads + head) * params.seq_q + row;
  const long long first =
      ((batch * params.heads + head) * split.slots + merged.first_slot) * Shape::kTileRows +
      in_tile;

  // Two passes over the slots: the row max of all parts, then the sums relative to it. The order of
  // the slots is fixed, so that the same call gives the same bits.
  float row_max = tile::minus_infinity();
  for (int slot = 0; slot < merged.slots; ++slot) {
    row_max = fmaxf(row_max, split.m[first + slot * Shape::kTileRows]);
  }
  float sum = 0.0f;
  float acc[kPairs][2] = {};
  for (int slot = 0; slot < merged.slots; ++slot) {
    const long long at = first + slot * Shape::kTileRows;
    const float of_slot = split.m[at];
    // A part with the largest row max has weight 1. The comparison also covers infinite maxima,
    // where the difference would be NaN: if all parts are empty, each has -inf and zeros.
    const float weight = of_slot == row_max ? 1.0f : ptx::exp2(of_slot - row_max);
    sum += weight * split.l[at];
#pragma unroll
    for (int pair = 0; pair < kPairs; ++pair) {
      const int column = pair * 64 + lane * 2;
      if (column >= kDim) continue;
      float low, high;
      ptx::load_global_8(low, high, split.acc + at * kDim + column);
      acc[pair][0] += weight * low;
      acc[pair][1] += weight * high;
    }
  }

  // A row without a visible key is written as zeros, even if a NaN in V is in its parts.
  const bool empty = sum == 0.0f && row_max == tile::minus_infinity();
  const bool carries_out = Shape::kCarryOut && tile::given<Shape>(params.acc_out);
  if (carries_out) {
    if (lane == 0) {
      params.m_out[row_of_all] = row_max;
      params.l_out[row_of_all] = sum;
    }
  } else {
    float correction = 1.0f;
    // The sink logit is added to the sum like a key without a value. LSE includes it, and
    // `correction` rescales the output to the new row max.
    if (Shape::kSinkLogit && tile::given<Shape>(params.score.sinks)) {
      const float sink = params.score.sinks[head % params.score.sink_count];
      const float old = row_max;
      row_max = fmaxf(row_max, sink);
      correction = ptx::exp2(old - row_max);
      sum = sum * correction + ptx::exp2(sink - row_max);
    }
    if (params.lse != nullptr && lane == 0) {
      params.lse[row_of_all] = (row_max + ptx::log2(sum)) * params.lse_factor;
    }
    const float inverse = correction / sum;
#pragma unroll
    for (int pair = 0; pair < kPairs; ++pair) {
      acc[pair][0] *= inverse;
      acc[pair][1] *= inverse;
    }
  }
#pragma unroll
  for (int pair = 0; pair < kPairs; ++pair) {
    const int column = pair * 64 + lane * 2;
    if (column >= kDim) continue;
    const float low = empty ? 0.0f : acc[pair][0];
    const float high = empty ? 0.0f : acc[pair][1];
    if (carries_out) {
      ptx::store_global_8(params.acc_out + row_of_all * kDim + column, low, high);
    } else {
      char* const to =
          static_cast<char*>(params.o) +
          (batch * params.o_batch + head * params.o_head + row * params.o_row + column) *
              tile::kElementBytes;
      *reinterpret_cast<unsigned*>(to) = Shape::Output::pack(low, high);
    }
  }
}

}  // namespace annulus::kernels
