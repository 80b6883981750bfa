// Computes the base-2 score of every block from the vectors of pool_blocks: their dot product times
// the scale. Each score is one chain of fused multiply-adds over ascending elements, so the host
// gets the same bits. A CTA computes 64 x 64 scores. If none of these blocks is a candidate, the
// scores are not written, and they are not read.
//
//   score_blocks<<<(row tiles * column tiles, H, B), kScoreThreads>>>(BlockScoreParams)

#include "kernels/selection/candidates.cuh"
#include "kernels/selection/score_tile.cuh"
#include "params/selection_params.h"
#include "tile/block_score.cuh"

namespace annulus::kernels {

__global__ void __launch_bounds__(kScoreThreads)
    score_blocks(const __grid_constant__ BlockScoreParams params) {
  __shared__ ScoreTile::Panels panels;
  const int across = (params.columns + kScoreTile - 1) / kScoreTile;
  const int first_row = static_cast<int>(blockIdx.x) / across * kScoreTile;
  const int first_column = static_cast<int>(blockIdx.x) % across * kScoreTile;
  const int head = static_cast<int>(blockIdx.y);

  if (!any_candidate(params.candidates, first_row, kScoreTile, first_column, kScoreTile,
                     kScoreThreads)) {
    return;
  }
  // Rows and columns that do not exist count as zeros and are not written.
  const int heads = params.candidates.heads;
  const int rows = params.candidates.rows;
  const int pitch = params.candidates.words * 32;
  const int kv_heads = heads / params.group;
  const long long batch = blockIdx.z;
  const float* q = params.q + (batch * heads + head) * rows * params.dim;
  const float* k =
      params.k + (batch * kv_heads + head / params.group) * params.columns * params.dim;
  ScoreTile products;
  products.add(
      panels, params.dim,
      [&](int line, int d) {
        const int row = first_row + line;
        return row < rows ? q[static_cast<long long>(row) * params.dim + d] : 0.0f;
      },
      [&](int line, int d) {
        const int column = first_column + line;
        return column < params.columns ? k[static_cast<long long>(column) * params.dim + d] : 0.0f;
      });
  float* scores = params.scores + (batch * heads + head) * rows * pitch;
#pragma unroll
  for (int a = 0; a < 4; ++a) {
#pragma unroll
    for (int b = 0; b < 4; ++b) {
      const int row = first_row + products.row(a);
      const int column = first_column + products.column(b);
      if (row < rows && column < params.columns) {
        scores[static_cast<long long>(row) * pitch + column] =
            tile::finite_score(__fmul_rn(products.sum(a, b), params.scale));
      }
    }
  }
}

}  // namespace annulus::kernels
