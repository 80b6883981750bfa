// Products of one warpgroup from one tile in shared memory, made as in wgmma_forward. The elements
// are small integers, so that every answer is exact.

#include "params/wgmma_params.h"
#include "ptx/mbarrier.cuh"
#include "ptx/memory.cuh"
#include "ptx/tensor_copy.cuh"
#include "tile/transpose.cuh"
#include "tile/warpgroup_multiply.cuh"

namespace annulus::kernels {

// One thread loads a tile from the first corner of its tensor.
template <typename Panels>
__device__ __forceinline__ void load_tile(unsigned to, const TensorMap& map, unsigned full) {
  ptx::arrive_expecting(full, Panels::kBytes);
  for (int panel = 0; panel < Panels::kCount; ++panel) {
    ptx::load_box(to + panel * Panels::kPanelBytes, &map, full,
                  {panel * Panels::kPanelColumns, 0, 0, 0});
  }
}

// The lanes of a warp load a tile row by row. Each lane loads separate rows.
template <typename Panels, int kRows>
__device__ __forceinline__ void load_rows(unsigned to, const TensorMap& map, unsigned full) {
  if (threadIdx.x == 0) ptx::arrive_expecting(full, Panels::kBytes);
  __syncwarp();
#pragma unroll 1
  for (int row = static_cast<int>(threadIdx.x); row < kRows; row += 32) {
    for (int panel = 0; panel < Panels::kCount; ++panel) {
      ptx::load_box(
          to + static_cast<unsigned>(panel * Panels::kPanelBytes + row * Panels::kRowBytes), &map,
          full, {panel * Panels::kPanelColumns, row, 0, 0});
    }
  }
}

__device__ __forceinline__ void begin_barrier(unsigned barrier, unsigned arrivals) {
  if (threadIdx.x == 0) {
    ptx::init_barrier(barrier, arrivals);
    ptx::publish_barriers();
  }
  __syncthreads();
}

// The lane's first row. Its other row is 8 rows further.
__device__ __forceinline__ int lane_row() {
  return static_cast<int>(threadIdx.x / 32 * 16 + threadIdx.x % 32 / 4);
}
__device__ __forceinline__ int lane_column(int piece, int i) {
  return 8 * piece + static_cast<int>(threadIdx.x % 4) * 2 + i % 2;
}

template <int kPieces>
__device__ __forceinline__ void write_out(const float (&d)[kPieces][4], float* out) {
  for (int c = 0; c < kPieces; ++c) {
    for (int i = 0; i < 4; ++i) {
      out[(lane_row() + i / 2 * 8) * kPieces * 8 + lane_column(c, i)] = d[c][i];
    }
  }
}

// out[64][kColumns] = Q K^T. With kByRows, the map of K has boxes of one row.
template <typename Shape>
__global__ void __launch_bounds__(128, 1)
    score_product(const __grid_constant__ TensorMap q, const __grid_constant__ TensorMap k,
                  float* out) {
  extern __shared__ __align__(1024) unsigned char shared_memory[];
  constexpr int kColumns = Shape::kColumns;
  constexpr int kDim = Shape::kDim;
  const unsigned queries = ptx::shared_address(shared_memory);
  const unsigned keys = queries + tile::Panels<64, kDim>::kBytes;
  const unsigned full = keys + tile::Panels<kColumns, kDim>::kBytes;
  begin_barrier(full, 2);
  if (threadIdx.x == 0) load_tile<tile::Panels<64, kDim>>(queries, q, full);
  if constexpr (Shape::kByRows) {
    if (threadIdx.x < 32) load_rows<tile::Panels<kColumns, kDim>, kColumns>(keys, k, full);
  } else {
    if (threadIdx.x == 0) load_tile<tile::Panels<kColumns, kDim>>(keys, k, full);
  }
  ptx::wait(full, 0);
  float scores[kColumns / 8][4];
  tile::WarpgroupQuery<tile::Bfloat16, kDim, false> query;
  query.read(queries, 0, 0);
  ptx::fence_products();
  tile::start_scores<tile::Bfloat16, kDim, kColumns>(scores, query, keys);
  ptx::commit_products();
  ptx::wait_products<0>();
  ptx::hold(scores);
  write_out(scores, out);
}

// The weight of a key in a row: a pattern of small integers, or a single key.
__device__ __forceinline__ float weight(int row, int key, int one_hot) {
  if (one_hot != 0) return key == (row * 5 + one_hot) % 64 ? 1.0f : 0.0f;
  return static_cast<float>((row + 3 * key) % 5 - 2);
}

template <bool kHalfPanel, int kKeys, int kDim, int kBytes>
struct PanelsOfValues : tile::ValuePanels<kKeys, kDim, kBytes> {};
template <int kKeys, int kDim, int kBytes>
struct PanelsOfValues<true, kKeys, kDim, kBytes> : tile::Panels<kKeys, kDim, kBytes> {};

// out[64][kDim] = P V with the weights above. With kHalfPanel the columns of V are a part of the
// last panel of 64. Otherwise V has the layout of wgmma_forward.
template <typename Shape>
__global__ void __launch_bounds__(128, 1)
    value_product(const __grid_constant__ TensorMap v, int one_hot, float* out) {
  extern __shared__ __align__(1024) unsigned char shared_memory[];
  using Element = typename Shape::Element;
  constexpr int kKeys = Shape::kKeys;
  constexpr int kDim = Shape::kDim;
  using Values = PanelsOfValues<Shape::kHalfPanel, kKeys, kDim, Element::kBytes>;
  using Turned = tile::Panels<kDim, kKeys, Element::kBytes>;
  constexpr bool kTurns = Element::kBytes == 1;
  const unsigned values = ptx::shared_address(shared_memory);
  const unsigned operand = values + (kTurns ? Values::kBytes : 0);
  const unsigned full = operand + (kTurns ? Turned::kBytes : Values::kBytes);
  begin_barrier(full, 1);
  if (threadIdx.x == 0) load_tile<Values>(values, v, full);
  ptx::wait(full, 0);
  if constexpr (kTurns) {
    tile::transpose_bytes<kKeys, kDim, 4>(values, operand, threadIdx.x / 32, threadIdx.x % 32);
    ptx::fence_shared_writes();
    __syncthreads();
  }
  float weights[kKeys / 8][4];
  float output[kDim / 8][4];
  for (int c = 0; c < kKeys / 8; ++c) {
    for (int i = 0; i < 4; ++i) {
      weights[c][i] = weight(lane_row() + i / 2 * 8, lane_column(c, i), one_hot);
    }
  }
  for (int c = 0; c < kDim / 8; ++c) {
    for (int i = 0; i < 4; ++i) output[c][i] = 0;
  }
  unsigned probabilities[tile::Probabilities<Element, kKeys>::kCount][4];
  tile::convert_probabilities<Element>(weights, probabilities);
  ptx::hold(output);
  ptx::fence_products();
  if constexpr (Shape::kHalfPanel) {
    const unsigned first = ptx::uniform(ptx::descriptor_address(operand));
#pragma unroll
    for (int step = 0; step < tile::Probabilities<Element, kKeys>::kCount; ++step) {
      const unsigned long long b = Values::rows(first, step);
      const int accumulate = 1;
      tile::WarpgroupProduct<Element, kDim>::values(output, probabilities[step], b, accumulate);
    }
  } else {
    tile::start_values<Element, kDim, kKeys>(output, probabilities, operand);
  }
  ptx::commit_products();
  ptx::wait_products<0>();
  ptx::hold(output);
  write_out(output, out);
}

}  // namespace annulus::kernels
