#ifndef ANNULUS_TILE_BATCH_ROW_CUH_
#define ANNULUS_TILE_BATCH_ROW_CUH_

// Joins states of a row of a batch, and writes the results of a row: O and LSE, or the state. Eight
// or more neighbouring threads share a row; a thread has 4 columns at a time, so that the threads
// move whole lines. If the accumulators of wgmma are written as they are, two lanes of a quad share
// a row.

#include "params/batch_params.h"
#include "ptx/async_copy.cuh"
#include "ptx/memory.cuh"
#include "tile/element.cuh"
#include "tile/softmax.cuh"
#include "tile/swizzle.cuh"

namespace annulus::tile {

using kernels::kRowThreads;

// The lanes of a warp that share a row with this lane, including this lane: kThreads neighbours, or
// two lanes at a distance of two.
template <int kThreads>
__device__ __forceinline__ unsigned lanes_of_row() {
  static_assert(kThreads == 2 || kThreads == kRowThreads || kThreads == 16 || kThreads == 32,
                "threads that share a row");
  const unsigned lane = threadIdx.x % 32;
  if constexpr (kThreads == 2) return 5u << (lane & ~2u);
  if constexpr (kThreads == 32) return 0xffffffffu;
  return ((1u << kThreads % 32) - 1) << lane / kThreads * kThreads;
}

__device__ __forceinline__ void load_columns(float (&acc)[4], const float* from) {
  const ptx::Words4 four = ptx::load_global_16(from);
  acc[0] = __uint_as_float(four.x);
  acc[1] = __uint_as_float(four.y);
  acc[2] = __uint_as_float(four.z);
  acc[3] = __uint_as_float(four.w);
}
__device__ __forceinline__ void store_columns(float* to, const float (&acc)[4]) {
  ptx::store_global_16(to, {__float_as_uint(acc[0]), __float_as_uint(acc[1]),
                            __float_as_uint(acc[2]), __float_as_uint(acc[3])});
}

// Row `row` of a tile as a query and a head.
struct PackedRow {
  int query;  // its number in the tile
  int head;   // its number among the H heads
  bool exists;

  __device__ __forceinline__ PackedRow(const kernels::BatchParams& params,
                                       const kernels::BatchRow& tile, int column, int row) {
    const int of_group = column % params.head_tiles * params.tile_heads;
    query = row / params.tile_heads;
    const int of_tile = row - query * params.tile_heads;
    head = column / params.head_tiles * params.group + of_group + of_tile;
    exists = query < tile.queries && of_group + of_tile < params.group;
  }
};

// The index of a row of the state of a tile's part. Its acc begins at this index times Dv.
__device__ __forceinline__ long long slot_row(const kernels::BatchParams& params,
                                              const kernels::BatchRow& tile, int part, int column,
                                              int row) {
  return (static_cast<long long>(tile.slot + part) * params.row_columns + column - tile.column) *
             params.slot_rows +
         row;
}

// The largest row max and the sum of several states of one row. `each(take)` calls take(m, l) for
// each of them, always in the same order.
struct JoinedRow {
  float row_max = minus_infinity();
  float sum = 0.0f;
  float unit = 1.0f;  // log2 of the base in which row maxima are exponents

  // The weight of a state with this row max. A state with the largest row max has weight 1. The
  // comparison also covers infinite maxima, whose difference would be NaN: if all states are empty,
  // each has -inf.
  __device__ __forceinline__ float weight(float m) const {
    return m == row_max ? 1.0f : ptx::exp2((m - row_max) * unit);
  }
  __device__ __forceinline__ bool empty() const {
    return sum == 0.0f && row_max == minus_infinity();
  }
};
template <typename Each>
__device__ __forceinline__ JoinedRow join(const Each& each, float unit = 1.0f) {
  JoinedRow row;
  row.unit = unit;
  each([&](float m, float) { row.row_max = fmaxf(row.row_max, m); });
  each([&](float m, float l) { row.sum += row.weight(m) * l; });
  return row;
}

// Joins states that kThreads neighbouring lanes hold, some in each lane. `lanes` is the mask of the
// lanes. All of them call it, and all of them get the result.
template <int kThreads, typename Each>
__device__ __forceinline__ JoinedRow join_over_lanes(unsigned lanes, const Each& each) {
  JoinedRow row;
  each([&](float m, float l) {
    const float before = row.row_max;
    row.row_max = fmaxf(before, m);
    row.sum = row.sum * row.weight(before) + row.weight(m) * l;
  });
  const float own = row.row_max;
#pragma unroll
  for (int apart = kThreads / 2; apart > 0; apart /= 2) {
    row.row_max = fmaxf(row.row_max, __shfl_xor_sync(lanes, row.row_max, apart));
  }
  row.sum *= row.weight(own);
#pragma unroll
  for (int apart = kThreads / 2; apart > 0; apart /= 2) {
    row.sum += __shfl_xor_sync(lanes, row.sum, apart);
  }
  return row;
}

// Writes a row whose state is complete, except for a carried state. `thread` is the number of this
// thread among the threads that share the row. columns(first, acc) sets the joined acc of 4 columns
// from `first` on, which is not divided by the sum, and is called with ascending numbers.
template <typename Shape, int kThreads = kRowThreads, typename Columns>
__device__ __forceinline__ void finish_row(const kernels::BatchParams& params,
                                           const kernels::BatchRow& tile, const PackedRow& at,
                                           int thread, JoinedRow row, const Columns& columns) {
  constexpr int kDim = Shape::kDimV;
  const long long q_row = tile.q_row + at.query;
  const long long state_row = q_row * params.heads + at.head;
  const bool sees_none = row.empty();  // the row sees none of this work's keys
  float factor = 1.0f;                 // factor of acc
  float in_factor = 0.0f;              // factor of the carried acc
  if constexpr (Shape::kCarryIn) {
    const float sum = params.l_in[state_row];
    if (sum != 0.0f) {
      const JoinedRow own = row;
      const float m = params.m_in[state_row];
      row.row_max = fmaxf(own.row_max, m);
      factor = row.weight(own.row_max);
      in_factor = row.weight(m);
      row.sum = factor * own.sum + in_factor * sum;
    }
  }
  const bool empty = row.empty();
  if constexpr (Shape::kCarryOut) {
    // The state may overwrite the carried state, because all threads of the row have read it.
    if constexpr (Shape::kCarryIn) __syncwarp(lanes_of_row<kThreads>());
    if (thread == 0) {
      params.m_out[state_row] = row.row_max;
      params.l_out[state_row] = row.sum;
    }
  } else {
    float correction = 1.0f;
    // The sink logit is added to the sum like a key without a value. LSE includes it.
    if constexpr (Shape::kSinkLogit) {
      const float sink = params.score.sinks[at.head % params.score.sink_count];
      const float old = row.row_max;
      row.row_max = fmaxf(old, sink);
      correction = row.weight(old);
      row.sum = row.sum * correction + ptx::exp2(sink - row.row_max);
    }
    if (params.lse != nullptr && thread == 0) {
      params.lse[q_row * params.lse_row + at.head * params.lse_head] =
          (row.row_max + ptx::log2(row.sum)) * params.lse_factor;
    }
    const float inverse = empty ? 0.0f : correction * ptx::reciprocal(row.sum);
    factor *= inverse;
    in_factor *= inverse;
  }
// This loop and the loop of leave_row() are not unrolled: both are in every kernel, once for each
// kind of result, and take a quarter of its compile time. But a loop that reads registers by index
// must be unrolled.
#pragma unroll kThreads == 2 ? kDim : 1
  for (int first = 0; first < kDim; first += 4 * kThreads) {
    const int column = first + thread * 4;
    float acc[4];
    columns(column, acc);
    // Without a visible key acc is 0, even if V has NaN.
#pragma unroll
    for (int i = 0; i < 4; ++i) acc[i] = sees_none ? 0.0f : acc[i] * factor;
    if constexpr (Shape::kCarryIn) {
      if (in_factor != 0.0f) {
        float in[4];
        load_columns(in, params.acc_in + state_row * kDim + column);
#pragma unroll
        for (int i = 0; i < 4; ++i) acc[i] += in_factor * in[i];
      }
    }
    if constexpr (Shape::kCarryOut) {
      store_columns(params.acc_out + state_row * kDim + column, acc);
    } else {
      using Output = typename Shape::Element;
      char* out = static_cast<char*>(params.o) +
                  (q_row * params.o_row + at.head * params.o_head + column) * kElementBytes;
      ptx::store_global_8(out, Output::pack(acc[0], acc[1]), Output::pack(acc[2], acc[3]));
    }
  }
}

// Writes a row of a work whose state is complete: the final results if the work has all of the
// row's keys, else the state in the slot of its part.
template <typename Shape, int kThreads = kRowThreads, typename Columns>
__device__ __forceinline__ void leave_row(const kernels::BatchParams& params,
                                          const kernels::BatchRow& tile,
                                          const kernels::BatchWork& work, int column,
                                          const PackedRow& at, int packed, int thread,
                                          const JoinedRow& row, const Columns& columns) {
  if (tile.parts == 1) {
    finish_row<Shape, kThreads>(params, tile, at, thread, row, columns);
    return;
  }
  const long long slot = slot_row(params, tile, work.part, column, packed);
  if (thread == 0) {
    params.tables.m[slot] = row.row_max;
    params.tables.l[slot] = row.sum;
  }
#pragma unroll kThreads == 2 ? Shape::kDimV : 1
  for (int first = 0; first < Shape::kDimV; first += 4 * kThreads) {
    const int begin = first + thread * 4;
    float acc[4];
    columns(begin, acc);
    store_columns(params.tables.acc + slot * Shape::kDimV + begin, acc);
  }
}

// Starts the copies of the kRows rows of Q of a tile, which are gathered. Rows that do not exist
// are filled with zeros.
template <int kDim, int kRows, int kThreads>
__device__ __forceinline__ void start_packed_query(const kernels::BatchParams& params,
                                                   const kernels::BatchRow& tile, int column,
                                                   unsigned shared, unsigned thread) {
  using Layout = Swizzle<kDim>;
#pragma unroll 2
  for (int i = static_cast<int>(thread); i < kRows * Layout::kChunks; i += kThreads) {
    const int packed = i / Layout::kChunks;
    const int chunk = i % Layout::kChunks;
    const PackedRow from(params, tile, column, packed);
    const char* source = static_cast<const char*>(params.q);
    if (from.exists) {
      source +=
          ((tile.q_row + from.query) * params.q_row + from.head * params.q_head) * kElementBytes +
          chunk * 16;
    }
    ptx::copy_async_16(shared + Layout::offset(packed, chunk), source, from.exists ? 16 : 0);
  }
}

// Writes acc of the 16 rows of row tile r of a warp to its staging, whose rows have `pitch` bytes.
// Rows that saw no key are zeros, even if V has NaN. Requires: the sums are complete.
template <int kRowTiles, int kPieces>
__device__ __forceinline__ void stage_rows(const RowState<kRowTiles>& state,
                                           const float (&output)[kRowTiles][kPieces][4], int r,
                                           unsigned staging, unsigned pitch, unsigned lane) {
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const bool empty = is_empty(state, r, half);
    const unsigned to = staging + (lane / 4 + 8 * half) * pitch + lane % 4 * 8;
#pragma unroll
    for (int d = 0; d < kPieces; ++d) {
      ptx::store_shared_8(to + d * 32, empty ? 0.0f : output[r][d][2 * half],
                          empty ? 0.0f : output[r][d][2 * half + 1]);
    }
  }
}
__device__ __forceinline__ void load_staged(float (&acc)[4], unsigned address) {
  const ptx::Words4 four = ptx::load_shared_16(address);
  acc[0] = __uint_as_float(four.x);
  acc[1] = __uint_as_float(four.y);
  acc[2] = __uint_as_float(four.z);
  acc[3] = __uint_as_float(four.w);
}

}  // namespace annulus::tile

#endif  // ANNULUS_TILE_BATCH_ROW_CUH_
