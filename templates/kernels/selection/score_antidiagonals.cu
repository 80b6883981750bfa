// Computes scores of blocks from the products on the antidiagonals of their cells of S x S: cell
// (a, b) has the sum over s of q[a S + S - 1 - s] . k[b S + s], as one chain of fused multiply-adds
// over ascending s and elements. For each row of cells and each block it writes the base-2
// logarithm of the sum of exp2 of the block's cells; select_blocks computes a softmax of each row.
// Rows outside of [begin, end) count as zeros; cells without any row inside do not count. Tiles
// without a candidate are not written, and their scores are not read.
//
//   score_antidiagonals<<<(cell row tiles * cell column tiles, H, B), kScoreThreads>>>(
//       AntidiagonalParams)

#include "kernels/selection/candidates.cuh"
#include "kernels/selection/score_tile.cuh"
#include "params/selection_params.h"
#include "ptx/convert.cuh"
#include "tile/block_score.cuh"
#include "tile/exact_math.cuh"

namespace annulus::kernels {

__device__ __forceinline__ float element_of(const unsigned short* data, bool bfloat16) {
  if (bfloat16) return __int_as_float(static_cast<int>(static_cast<unsigned>(*data) << 16));
  float low, high;
  ptx::unpack_f16(low, high, *data);
  return low;
}

__global__ void __launch_bounds__(kScoreThreads)
    score_antidiagonals(const __grid_constant__ AntidiagonalParams params) {
  __shared__ ScoreTile::Panels panels;
  __shared__ float cells[kScoreTile][kScoreTile + 1];
  const int thread = static_cast<int>(threadIdx.x);
  const int across = (params.k.blocks + kScoreTile - 1) / kScoreTile;
  // The first row of cells.
  const int first_row = static_cast<int>(blockIdx.x) / across * kScoreTile;
  const int first_column = static_cast<int>(blockIdx.x) % across * kScoreTile;
  const int of_tile = kScoreTile / params.cells;  // blocks in a row of the tile
  // The tile's 64 rows of cells touch at most (64 - 1) / parts + 2 rows of blocks.
  if (!any_candidate(params.candidates, first_row / params.parts,
                     (kScoreTile - 1) / params.parts + 2, first_column / params.cells, of_tile,
                     kScoreThreads)) {
    return;
  }
  const int head = static_cast<int>(blockIdx.y);
  const long long batch = blockIdx.z;
  const unsigned short* q = static_cast<const unsigned short*>(params.q.data) +
                            batch * params.q.batch + head * params.q.head;
  const unsigned short* k = static_cast<const unsigned short*>(params.k.data) +
                            batch * params.k.batch + head / params.group * params.k.head;
  const int stride = params.q.block;  // S
  // One pass for each s: row a of the tile reads row S - 1 - s of its cell of Q, and column b reads
  // row s of its cell of K.
  ScoreTile products;
  for (int s = 0; s < stride; ++s) {
    products.add(
        panels, params.dim,
        [&](int line, int d) {
          const int row = (first_row + line) * stride + stride - 1 - s;
          return row < params.q.end ? element_of(q + row * params.q.row + d, params.bfloat16)
                                    : 0.0f;
        },
        [&](int line, int d) {
          const int column = (first_column + line) * stride + s;
          return column >= params.k.begin && column < params.k.end
                     ? element_of(k + column * params.k.row + d, params.bfloat16)
                     : 0.0f;
        });
  }
#pragma unroll
  for (int a = 0; a < 4; ++a) {
#pragma unroll
    for (int b = 0; b < 4; ++b) {
      cells[products.row(a)][products.column(b)] =
          tile::finite_score(__fmul_rn(products.sum(a, b), params.scale));
    }
  }
  __syncthreads();
  // A thread joins the cells of one row and one block: it finds the largest score, and then the sum
  // relative to it.
  const int first_cell = params.k.begin / stride - first_column;
  const int end_cell = (params.k.end + stride - 1) / stride - first_column;
  const int pitch = params.candidates.words * 32;
  const long long list = batch * params.candidates.heads + head;
  float* scores = params.scores + list * params.candidates.rows * params.parts * pitch;
  for (int i = thread; i < kScoreTile * of_tile; i += kScoreThreads) {
    const int line = i / of_tile;
    const int row = first_row + line;
    const int block = i % of_tile * params.cells;
    const int begin = block > first_cell ? block : first_cell;
    const int end = block + params.cells < end_cell ? block + params.cells : end_cell;
    if (row >= params.q.blocks || begin >= end) continue;
    float peak = cells[line][begin];
    for (int b = begin + 1; b < end; ++b) peak = fmaxf(peak, cells[line][b]);
    float sum = 0.0f;
    for (int b = begin; b < end; ++b) {
      sum = __fadd_rn(sum, tile::exact_exp2(__fadd_rn(cells[line][b], -peak)));
    }
    scores[static_cast<long long>(row) * pitch + (first_column + block) / params.cells] =
        tile::finite_score(__fadd_rn(peak, tile::exact_log2(sum)));
  }
}

}  // namespace annulus::kernels
