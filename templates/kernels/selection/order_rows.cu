// Computes from the number of tiles of each row the row's begin in the list, and its place in
// launch order. The longest rows come first, and of equal rows the one with the lower number. A
// thread takes one row and compares it with all rows of its list, which for a thousand rows is less
// work than sorting them.
//
//   order_rows<<<(ceil(row tiles / kOrderThreads), H, B), kOrderThreads>>>(OrderRowsParams)

#include "params/selection_params.h"

namespace annulus::kernels {

__global__ void __launch_bounds__(kOrderThreads)
    order_rows(const __grid_constant__ OrderRowsParams params) {
  const int row = static_cast<int>(blockIdx.x * kOrderThreads + threadIdx.x);
  if (row >= params.row_tiles) return;
  const long long list = static_cast<long long>(blockIdx.z) * params.heads + blockIdx.y;
  const int* counts = params.counts + list * params.row_tiles;
  const int mine = counts[row];
  long long before = params.first + list * params.capacity;
  int turn = 0;
#pragma unroll 4
  for (int other = 0; other < params.row_tiles; ++other) {
    const int count = counts[other];
    if (other < row) before += count;
    if (count > mine || (count == mine && other < row)) ++turn;
  }
  long long* row_begin = params.row_begin + list * (params.row_tiles + 1);
  row_begin[row] = before;
  if (row == params.row_tiles - 1) row_begin[row + 1] = before + mine;
  params.row_order[list * params.row_tiles + turn] = row;
}

}  // namespace annulus::kernels
