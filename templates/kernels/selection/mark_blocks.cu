// Turns the caller's block indices into a set of blocks, and adds the forced blocks. An index
// outside of the row, such as -1, is skipped, and so is a block that no query of the row sees. One
// warp takes one row.
//
//   mark_blocks<<<(ceil(rows / kSelectionWarps), H, B), kSelectionThreads>>>(MarkParams)

#include "params/selection_params.h"

namespace annulus::kernels {

__global__ void __launch_bounds__(kSelectionThreads)
    mark_blocks(const __grid_constant__ MarkParams params) {
  const int lane = static_cast<int>(threadIdx.x % 32);
  const int row = static_cast<int>(blockIdx.x * kSelectionWarps + threadIdx.x / 32);
  if (row >= params.rows) return;
  const int head = static_cast<int>(blockIdx.y);
  const long long line = static_cast<long long>(head % params.visible_heads) * params.rows + row;
  const long long list = static_cast<long long>(blockIdx.z) * params.heads + head;
  unsigned* chosen = params.chosen + (list * params.rows + row) * params.words;
  for (int word = lane; word < params.words; word += 32) {
    chosen[word] = params.forced[line * params.words + word];
  }
  __syncwarp();
  const int* given = params.given + (list * params.rows + row) * params.most;
  for (int i = lane; i < params.most; i += 32) {
    const int column = given[i];
    if (column < 0 || column >= params.columns) continue;
    const unsigned bit = 1u << (column & 31);
    if (params.visible[line * params.words + (column >> 5)] & bit) {
      atomicOr(chosen + (column >> 5), bit);
    }
  }
}

}  // namespace annulus::kernels
