#ifndef ANNULUS_TILE_ROW_IO_CUH_
#define ANNULUS_TILE_ROW_IO_CUH_

// The data that a warp reads before its tiles and writes after them: the state carried between
// launches (params/attention_params.h), LSE and the 16-bit output. Rows beyond Sq are neither read
// nor written.

#include "ptx/memory.cuh"
#include "tile/softmax.cuh"
#include "tile/swizzle.cuh"

namespace annulus::tile {

// The rows of a lane: `first_row` is its upper row of the first row tile, and the other one is 8
// rows below. Row i has index base + i in arrays of [B, H, Sq]; `base` is (b * H + h) * Sq.
struct LaneRows {
  long long base;
  int first_row;
  int rows;  // Sq
  unsigned lane;

  __device__ __forceinline__ int row(int r, int half) const {
    return first_row + 16 * r + 8 * half;
  }
};

// Starts from the empty state.
template <int kRowTiles, int kPieces>
__device__ __forceinline__ void start_empty(RowState<kRowTiles>& state,
                                            float (&output)[kRowTiles][kPieces][4]) {
#pragma unroll
  for (int r = 0; r < kRowTiles; ++r) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      state.row_max[r][half] = minus_infinity();
      state.sum[r][half] = 0.0f;
    }
#pragma unroll
    for (int d = 0; d < kPieces; ++d) {
#pragma unroll
      for (int i = 0; i < 4; ++i) output[r][d][i] = 0.0f;
    }
  }
}

// Continues from acc_in, m_in, l_in. The sum is stored in one lane of the quad, because
// complete_sums() adds up all four lanes. If it is 0 the row is empty, and m and acc are ignored.
template <int kRowTiles, int kPieces>
__device__ __forceinline__ void load_state(RowState<kRowTiles>& state,
                                           float (&output)[kRowTiles][kPieces][4],
                                           const kernels::AttentionParams& params,
                                           const LaneRows& at) {
#pragma unroll
  for (int r = 0; r < kRowTiles; ++r) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int row = at.row(r, half);
      if (row >= at.rows) continue;
      const long long index = at.base + row;
      const float sum = params.l_in[index];
      const bool empty = sum == 0.0f;
      const float row_max = params.m_in[index];
      state.row_max[r][half] = empty ? minus_infinity() : row_max;
      state.sum[r][half] = at.lane % 4 == 0 ? sum : 0.0f;
      const float* acc = params.acc_in + index * (kPieces * 8) + at.lane % 4 * 2;
#pragma unroll
      for (int d = 0; d < kPieces; ++d) {
        float low, high;
        ptx::load_global_8(low, high, acc + d * 8);
        output[r][d][2 * half] = empty ? 0.0f : low;
        output[r][d][2 * half + 1] = empty ? 0.0f : high;
      }
    }
  }
}

// The arrays to which a state is stored: row i is m[i], l[i] and acc[i * Dv] to acc[(i + 1) * Dv -
// 1].
struct StateOut {
  float* acc;
  float* m;
  float* l;
};

// The arrays for the state of a segment of a split row. Sets at->base so that the tile row's first
// row is the slot's first row. Requires: the row is split, tiles have kRows rows.
template <int kRows>
__device__ __forceinline__ StateOut slot_of(const kernels::SplitParams& split, int slot,
                                            long long head_of_all, int first_row, LaneRows* at) {
  at->base = (head_of_all * split.slots + slot) * kRows - first_row;
  return {split.acc, split.m, split.l};
}

// Writes a state. A row without a visible key is written as the empty state, even if a NaN in V has
// changed its zeros. Requires: the sums are complete.
template <int kRowTiles, int kPieces>
__device__ __forceinline__ void store_state(const RowState<kRowTiles>& state,
                                            const float (&output)[kRowTiles][kPieces][4],
                                            const StateOut& to, const LaneRows& at) {
#pragma unroll
  for (int r = 0; r < kRowTiles; ++r) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int row = at.row(r, half);
      if (row >= at.rows) continue;
      const long long index = at.base + row;
      const bool empty = is_empty(state, r, half);
      if (at.lane % 4 == 0) {
        to.m[index] = empty ? minus_infinity() : state.row_max[r][half];
        to.l[index] = state.sum[r][half];
      }
      float* acc = to.acc + index * (kPieces * 8) + at.lane % 4 * 2;
#pragma unroll
      for (int d = 0; d < kPieces; ++d) {
        const float low = empty ? 0.0f : output[r][d][2 * half];
        const float high = empty ? 0.0f : output[r][d][2 * half + 1];
        ptx::store_global_8(acc + d * 8, low, high);
      }
    }
  }
}

// Writes LSE = (m + log2 l) * lse_factor, which is -inf for a row without a visible key.
// Requires: the sums are complete.
template <int kRowTiles>
__device__ __forceinline__ void store_lse(const RowState<kRowTiles>& state,
                                          const kernels::AttentionParams& params,
                                          const LaneRows& at) {
  if (params.lse == nullptr || at.lane % 4 != 0) return;
#pragma unroll
  for (int r = 0; r < kRowTiles; ++r) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int row = at.row(r, half);
      if (row >= at.rows) continue;
      const float lse = state.row_max[r][half] + ptx::log2(state.sum[r][half]);
      params.lse[at.base + row] = lse * params.lse_factor;
    }
  }
}

// Writes O = acc / l as 16-bit elements, 0 for a row without a visible key. The fragments go
// through `staging`, the warp's own part of shared memory (kRowTiles * 16 rows of kPieces * 8
// elements, swizzled), so that global memory gets whole rows in 16-byte stores. Requires: the sums
// are complete; no other warp uses `staging`; `matrix` and `row_bytes` are multiples of 16, which
// is checked for the operands of every run.
template <typename Element, int kRowTiles, int kPieces>
__device__ __forceinline__ void store_output(const RowState<kRowTiles>& state,
                                             const float (&output)[kRowTiles][kPieces][4],
                                             char* matrix, long long row_bytes, unsigned staging,
                                             int warp_row, int rows, unsigned lane) {
  using Layout = Swizzle<kPieces * 8>;
  const unsigned slot = staging + Layout::offset(lane / 4, 0) + lane % 4 * 4;
#pragma unroll
  for (int r = 0; r < kRowTiles; ++r) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const float sum = state.sum[r][half];
      const float inverse = ptx::reciprocal(sum);
      // A row without a visible key is 0, even if a NaN in V has changed its zeros.
      const unsigned keep = is_empty(state, r, half) ? 0u : 0xffffffffu;
#pragma unroll
      for (int d = 0; d < kPieces; ++d) {
        const unsigned packed =
            Element::pack(output[r][d][2 * half] * inverse, output[r][d][2 * half + 1] * inverse);
        // The chunk index is d. Even chunks are steps from chunk 0; odd chunks differ in one more
        // bit.
        const unsigned address = Layout::step(slot, d / 2) ^ (d % 2 * 16);
        ptx::store_shared(address + (16 * r + 8 * half) * Layout::kPitch, packed & keep);
      }
    }
  }
  __syncwarp();

  // Lanes now read whole rows: kPhases lanes share a row, and a pass of the warp covers
  // kRowsPerPass rows.
  constexpr int kRowsPerPass = 32 / Layout::kPhases;
  const unsigned lane_row = lane / Layout::kPhases;
  const unsigned chunk = lane % Layout::kPhases;
  const int row = warp_row + static_cast<int>(lane_row);
  char* to = matrix + row * row_bytes + chunk * 16;
  const unsigned first = staging + Layout::offset(lane_row, chunk);
#pragma unroll
  for (int pass = 0; pass < kRowTiles * 16 / kRowsPerPass; ++pass) {
    if (row + pass * kRowsPerPass < rows) {
      // lane_row is below kRowsPerPass, a power of two, so the pass and the lane change different
      // bits of the row, and the phase of the pass can be added by an exclusive or.
      const unsigned from = (first ^ (Layout::phase(pass * kRowsPerPass) << 4)) +
                            pass * kRowsPerPass * Layout::kPitch;
#pragma unroll
      for (int group = 0; group < Layout::kChunks / Layout::kPhases; ++group) {
        constexpr int kGroupBytes = Layout::kPhases * 16;
        ptx::store_global_16(to + group * kGroupBytes,
                             ptx::load_shared_16(from + group * kGroupBytes));
      }
    }
    to += kRowsPerPass * row_bytes;
  }
}

}  // namespace annulus::tile

#endif  // ANNULUS_TILE_ROW_IO_CUH_
