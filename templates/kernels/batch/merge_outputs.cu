// Merges the outputs of attention over several disjoint sets of keys: with each set's O and LSE,
// those over all of the keys. Where keys are sharded between ranks, each has one.
//
//   merge_outputs<Shape><<<ceil(most rows x H / kMergeHeads), kMergeThreads>>>(MergeParams)
//
// Eight threads share a row of a head; each moves pieces of 16 bytes, so that together they move
// lines of 128. The inputs are added up in their order. How many rows there are comes from memory
// that nobody has checked, and is clamped to those that were planned.
//
// Shape gives the constants; README.md lists what it must define.

#include "params/merge_params.h"
#include "ptx/math.cuh"
#include "ptx/memory.cuh"
#include "tile/batch_row.cuh"
#include "tile/chunk.cuh"

namespace annulus::kernels {
namespace {

// A row of a head: the LSE of its inputs, and what follows from them.
template <int kInputs>
struct RowInputs {
  float lse[kInputs];
  int counted = 0;  // inputs that are not empty
  tile::JoinedRow joined;

  __device__ __forceinline__ RowInputs(const MergeParams& params, int row, int head) {
    const long long at = row * params.lse_row + head * params.lse_head;
#pragma unroll
    for (int i = 0; i < kInputs; ++i) lse[i] = params.lse[i][at];
#pragma unroll
    for (int i = 0; i < kInputs; ++i) counted += counts(i) ? 1 : 0;
    // An input is the state whose row max is its LSE and whose sum is 1.
    joined = tile::join(
        [&](const auto& take) {
#pragma unroll
          for (int i = 0; i < kInputs; ++i) take(lse[i], counts(i) ? 1.0f : 0.0f);
        },
        params.unit);
  }

  // Whether an input has seen a key. One that has not counts for nothing, whatever its O holds.
  __device__ __forceinline__ bool counts(int input) const {
    return lse[input] != tile::minus_infinity();
  }

  __device__ __forceinline__ float merged_lse(const MergeParams& params) const {
    if (counted != 1) return joined.row_max + ptx::log2(joined.sum) * params.inverse_unit;
    float only = 0.0f;
#pragma unroll
    for (int i = 0; i < kInputs; ++i) {
      if (counts(i)) only = lse[i];
    }
    return only;
  }
};

// Eight elements of O from those of the inputs that count, whose pieces are `from` bytes behind
// their begins. Some inputs at a time are under way, as many as registers allow. A piece of one
// input alone keeps its bits: negative zeros and NaN would not pass through the sum as they are.
template <typename Element, int kInputs>
__device__ __forceinline__ ptx::Words4 merged_piece(const MergeParams& params,
                                                    const RowInputs<kInputs>& row, long long from) {
  constexpr int kUnderWay = kInputs < 4 ? kInputs : 4;
  ptx::Words4 only = {};
  tile::Chunk<Element> sum(only);
#pragma unroll
  for (int first = 0; first < kInputs; first += kUnderWay) {
    ptx::Words4 pieces[kUnderWay] = {};
#pragma unroll
    for (int i = 0; i < kUnderWay; ++i) {
      if (first + i >= kInputs || !row.counts(first + i)) continue;
      pieces[i] = ptx::load_global_16(static_cast<const char*>(params.o[first + i]) + from);
    }
#pragma unroll
    for (int i = 0; i < kUnderWay; ++i) {
      if (first + i >= kInputs || !row.counts(first + i)) continue;
      only = pieces[i];
      const tile::Chunk<Element> piece(pieces[i]);
      const float weight = row.joined.weight(row.lse[first + i]);
#pragma unroll
      for (int e = 0; e < tile::kChunkElements; ++e) sum.values[e] += weight * piece.values[e];
    }
  }
  if (row.counted == 1) return only;
  const float inverse = row.joined.empty() ? 0.0f : ptx::reciprocal(row.joined.sum);
#pragma unroll
  for (int e = 0; e < tile::kChunkElements; ++e) sum.values[e] *= inverse;
  return sum.packed();
}

}  // namespace

template <typename Shape>
__global__ void __launch_bounds__(kMergeThreads, kMergeResident)
    merge_outputs(const __grid_constant__ MergeParams params) {
  constexpr int kInputs = Shape::kInputs;
  static_assert(kInputs >= 2 && kInputs <= kMostMerged,
                "MergeParams has room for 16 inputs, and one alone has nothing to merge with");
  const int thread = static_cast<int>(threadIdx.x % kRowThreads);
  const int at =
      static_cast<int>(blockIdx.x) * kMergeHeads + static_cast<int>(threadIdx.x / kRowThreads);
  const int number = at / params.heads;
  const int head = at - number * params.heads;
  int rows = params.most_rows;
  if (params.rows != nullptr && *params.rows < rows) rows = *params.rows;
  if (number >= rows) return;

  const RowInputs<kInputs> row(params, number, head);
  // The merged LSE may go over that of the first input: all threads of the row have read it.
  __syncwarp(0xffu << (threadIdx.x % 32 / kRowThreads * kRowThreads));
  if (params.merged_lse != nullptr && thread == 0) {
    params.merged_lse[number * params.merged_lse_row + head * params.merged_lse_head] =
        row.merged_lse(params);
  }
  const long long from = number * params.o_row + head * params.o_head;
  const long long to = number * params.merged_o_row + head * params.merged_o_head;
#pragma unroll 1
  for (int chunk = thread; chunk < params.chunks; chunk += kRowThreads) {
    const int first = chunk * tile::kChunkElements;
    ptx::store_global_16(
        static_cast<char*>(params.merged_o) + (to + first) * tile::kElementBytes,
        merged_piece<typename Shape::Element>(params, row, (from + first) * tile::kElementBytes));
  }
}

}  // namespace annulus::kernels
