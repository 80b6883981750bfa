// Classifies blocks of a pattern as empty, full or partial. The result is exact. One warp takes one
// block. It first evaluates the mask for the block's ranges of positions (tile/range_mask.cuh). If
// that does not decide, it evaluates pairs until it has found both a visible and a hidden pair.
//
//   classify_blocks<Mask><<<(ceil(columns / kLayoutWarps), rows, heads), kLayoutThreads>>>(
//       ClassifyParams)
//
// A grid has at most 65535 rows; each CTA takes every gridDim.y-th row of blocks. Mask is the same
// as in mma_forward.

#include "params/layout_params.h"
#include "tile/range_mask.cuh"

namespace annulus::kernels {

template <typename Mask>
__global__ void __launch_bounds__(kLayoutThreads)
    classify_blocks(const __grid_constant__ ClassifyParams params) {
  const int lane = static_cast<int>(threadIdx.x % 32);
  const int column = static_cast<int>(blockIdx.x * kLayoutWarps + threadIdx.x / 32);
  if (column >= params.columns) return;
  const int head = static_cast<int>(blockIdx.z);
  const tile::MaskContext<32> context{params.mask, nullptr, 0, 0, 0, 0, 0, head, 0};
  for (int row = static_cast<int>(blockIdx.y); row < params.rows;
       row += static_cast<int>(gridDim.y)) {
    const int first_row = row * params.block_rows;
    const int first_column = column * params.block_columns;
    const int rows_left = params.seq_q - first_row;
    const int columns_left = params.seq_k - first_column;
    const int rows = rows_left < params.block_rows ? rows_left : params.block_rows;
    const int columns = columns_left < params.block_columns ? columns_left : params.block_columns;
    const int q = params.q_position + first_row;
    const int k = params.k_position + first_column;
    const tile::RangeMask ranges(context, {q, q + rows - 1}, {k, k + columns - 1});
    const tile::Possible possible = Mask::visible(ranges, 0, 0);
    bool visible = possible.visible;
    bool hidden = possible.hidden;
    if (visible && hidden) {
      visible = hidden = false;
      for (int i = 0; i < rows && !(visible && hidden); ++i) {
        for (int j = 0; j < columns; j += 32) {
          const bool exists = j + lane < columns;
          const bool sees = exists && Mask::visible(context, q + i, k + j + lane);
          visible |= __any_sync(0xffffffffu, sees);
          hidden |= __any_sync(0xffffffffu, exists && !sees);
        }
      }
    }
    if (lane == 0) {
      params.classes[(static_cast<long long>(head) * params.rows + row) * params.columns + column] =
          static_cast<unsigned char>(visible ? (hidden ? 2 : 1) : 0);
    }
  }
}

}  // namespace annulus::kernels
