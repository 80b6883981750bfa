// Merges the results of attention over several disjoint sets of keys (O and LSE, or states) into
// the result over all of the keys. If keys are sharded between ranks, each rank has one such
// result.
//
//   merge_outputs<Shape><<<ceil(most rows x H / kMergeHeads), kMergeThreads>>>(MergeParams)
//
// Eight threads share a row of a head; each moves pieces of 16 bytes, so that together they move
// lines of 128. The inputs are added up in their order. The number of rows comes from memory that
// is not checked, and is clamped to the planned number.
//
// Shape has the constants; README.md lists which it must define.

#include "params/merge_params.h"
#include "ptx/math.cuh"
#include "ptx/memory.cuh"
#include "tile/batch_row.cuh"
#include "tile/chunk.cuh"

namespace annulus::kernels {
namespace {

// A row of a head: the LSE, or m and l, of its inputs, and the numbers that follow from them.
template <typename Shape>
struct RowInputs {
  enum : int { kInputs = Shape::kInputs };
  enum : bool { kStates = Shape::kStates, kSinkLogit = Shape::kSinkLogit };
  float lse[kInputs];  // LSE; with states it is m
  float l[kInputs];    // only with states
  int counted = 0;     // inputs that are not empty
  tile::JoinedRow joined;

  __device__ __forceinline__ RowInputs(const MergeParams& params, int row, int head) {
    const long long at = row * params.lse_row + head * params.lse_head;
#pragma unroll
    for (int i = 0; i < kInputs; ++i) lse[i] = params.lse[i][at];
    if constexpr (kStates) {
#pragma unroll
      for (int i = 0; i < kInputs; ++i) l[i] = params.l[i][at];
        // m of a state without a key may be anything.
#pragma unroll
      for (int i = 0; i < kInputs; ++i) lse[i] = counts(i) ? lse[i] : tile::minus_infinity();
    }
#pragma unroll
    for (int i = 0; i < kInputs; ++i) counted += counts(i) ? 1 : 0;
    float sink = tile::minus_infinity();
    if constexpr (kSinkLogit) sink = params.sinks[head] * params.sink_unit;
    // O and LSE are a state whose row max is LSE and whose sum is 1. A sink is such a state too,
    // with values that are zeros.
    joined = tile::join(
        [&](const auto& take) {
#pragma unroll
          for (int i = 0; i < kInputs; ++i) take(lse[i], counts(i) ? sum_of(i) : 0.0f);
          if constexpr (kSinkLogit) take(sink, 1.0f);
        },
        params.unit);
  }

  // Whether an input has seen a key. An input that has not is ignored, whatever its O holds.
  __device__ __forceinline__ bool counts(int input) const {
    if constexpr (kStates) return l[input] != 0.0f;
    return lse[input] != tile::minus_infinity();
  }
  __device__ __forceinline__ float sum_of(int input) const {
    if constexpr (kStates) return l[input];
    return 1.0f;
  }

  __device__ __forceinline__ float merged_lse(const MergeParams& params) const {
    if constexpr (kStates) return (joined.row_max + ptx::log2(joined.sum)) * params.inverse_unit;
    if (kSinkLogit || counted != 1) {
      return joined.row_max + ptx::log2(joined.sum) * params.inverse_unit;
    }
    float only = 0.0f;
#pragma unroll
    for (int i = 0; i < kInputs; ++i) {
      if (counts(i)) only = lse[i];
    }
    return only;
  }
};

// Merges eight elements of O from the inputs that count. Their pieces are `from` bytes after the
// start of each O. The registers limit how many inputs are loaded at a time. If only one input
// counts, its bits are copied, because the sum would change negative zeros and NaN.
template <typename Shape>
__device__ __forceinline__ ptx::Words4 merged_piece(const MergeParams& params,
                                                    const RowInputs<Shape>& row, long long from) {
  using Element = typename Shape::Element;
  constexpr int kInputs = Shape::kInputs;
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
  if (!Shape::kSinkLogit && row.counted == 1) return only;
  const float inverse = row.joined.empty() ? 0.0f : ptx::reciprocal(row.joined.sum);
#pragma unroll
  for (int e = 0; e < tile::kChunkElements; ++e) sum.values[e] *= inverse;
  return sum.packed();
}

// Merges four elements of acc in the same way, without dividing by the sum. The pieces of states
// are `from` elements after the start of each acc.
template <typename Shape>
__device__ __forceinline__ void merge_acc(const MergeParams& params, const RowInputs<Shape>& row,
                                          long long from, float (&sum)[4]) {
  constexpr int kInputs = Shape::kInputs;
  constexpr int kUnderWay = kInputs < 4 ? kInputs : 4;
  // With this start value, a sum keeps the sign of a zero.
#pragma unroll
  for (int e = 0; e < 4; ++e) sum[e] = -0.0f;
#pragma unroll
  for (int first = 0; first < kInputs; first += kUnderWay) {
    float pieces[kUnderWay][4] = {};
#pragma unroll
    for (int i = 0; i < kUnderWay; ++i) {
      if (first + i >= kInputs || !row.counts(first + i)) continue;
      tile::load_columns(pieces[i], static_cast<const float*>(params.o[first + i]) + from);
    }
#pragma unroll
    for (int i = 0; i < kUnderWay; ++i) {
      if (first + i >= kInputs || !row.counts(first + i)) continue;
      const float weight = row.joined.weight(row.lse[first + i]);
#pragma unroll
      for (int e = 0; e < 4; ++e) sum[e] += weight * pieces[i][e];
    }
  }
#pragma unroll
  for (int e = 0; e < 4; ++e) sum[e] = row.counted == 0 ? 0.0f : sum[e];
}

// Writes the pieces of the eight threads for a row of a head, for states.
template <typename Shape>
__device__ __forceinline__ void write_merged_states(const MergeParams& params,
                                                    const RowInputs<Shape>& row, long long from,
                                                    long long to, int thread) {
  using Element = typename Shape::Element;
  const float inverse = row.joined.empty() ? 0.0f : ptx::reciprocal(row.joined.sum);
#pragma unroll 1
  for (int first = 4 * thread; first < params.chunks * tile::kChunkElements;
       first += 4 * kRowThreads) {
    float sum[4];
    merge_acc<Shape>(params, row, from + first, sum);
    if constexpr (Shape::kCarryOut) {
      tile::store_columns(static_cast<float*>(params.merged_o) + to + first, sum);
    } else {
#pragma unroll
      for (int e = 0; e < 4; ++e) sum[e] *= inverse;
      ptx::store_global_8(static_cast<char*>(params.merged_o) + (to + first) * tile::kElementBytes,
                          Element::pack(sum[0], sum[1]), Element::pack(sum[2], sum[3]));
    }
  }
}

}  // namespace

template <typename Shape>
__global__ void __launch_bounds__(kMergeThreads, kMergeResident)
    merge_outputs(const __grid_constant__ MergeParams params) {
  static_assert(Shape::kInputs >= 1 && Shape::kInputs <= kMaxMerged,
                "MergeParams has room for 16 inputs");
  static_assert(!Shape::kCarryOut || (Shape::kStates && !Shape::kSinkLogit),
                "a state is made of states, and has no sink");
  const int thread = static_cast<int>(threadIdx.x % kRowThreads);
  const int at =
      static_cast<int>(blockIdx.x) * kMergeHeads + static_cast<int>(threadIdx.x / kRowThreads);
  const int number = at / params.heads;
  const int head = at - number * params.heads;
  int rows = params.max_rows;
  if (params.rows != nullptr && *params.rows < rows) rows = *params.rows;
  if (number >= rows) return;

  const RowInputs<Shape> row(params, number, head);
  // The result may overwrite the first input, because all threads of the row have read it.
  __syncwarp(0xffu << (threadIdx.x % 32 / kRowThreads * kRowThreads));
  const long long merged_at = number * params.merged_lse_row + head * params.merged_lse_head;
  if constexpr (Shape::kCarryOut) {
    if (thread == 0) {
      params.merged_lse[merged_at] = row.joined.row_max;
      params.merged_l[merged_at] = row.joined.sum;
    }
  } else {
    if (params.merged_lse != nullptr && thread == 0) {
      params.merged_lse[merged_at] = row.merged_lse(params);
    }
  }
  const long long from = number * params.o_row + head * params.o_head;
  const long long to = number * params.merged_o_row + head * params.merged_o_head;
  if constexpr (Shape::kStates) {
    write_merged_states<Shape>(params, row, from, to, thread);
    return;
  }
#pragma unroll 1
  for (int chunk = thread; chunk < params.chunks; chunk += kRowThreads) {
    const int first = chunk * tile::kChunkElements;
    ptx::store_global_16(static_cast<char*>(params.merged_o) + (to + first) * tile::kElementBytes,
                         merged_piece<Shape>(params, row, (from + first) * tile::kElementBytes));
  }
}

}  // namespace annulus::kernels
