// Writes the chosen blocks for the caller: for each row its indices, ascending, at most `most`, and
// then -1. One warp takes one row.
//
//   export_blocks<<<(ceil(rows / kSelectionWarps), H, B), kSelectionThreads>>>(ExportParams)

#include "params/selection_params.h"

namespace annulus::kernels {

__global__ void __launch_bounds__(kSelectionThreads)
    export_blocks(const __grid_constant__ ExportParams params) {
  const int lane = static_cast<int>(threadIdx.x % 32);
  const int row = static_cast<int>(blockIdx.x * kSelectionWarps + threadIdx.x / 32);
  if (row >= params.rows) return;
  const long long line =
      (static_cast<long long>(blockIdx.z) * params.heads + blockIdx.y) * params.rows + row;
  int* to = params.indices + line * params.most;
  int count = 0;
  for (int word = 0; word < params.words; ++word) {
    const unsigned bits = params.chosen[line * params.words + word];
    const int place = count + __popc(bits & ((1u << lane) - 1));
    if ((bits >> lane & 1u) && place < params.most) to[place] = word * 32 + lane;
    count += __popc(bits);
  }
  for (int i = count + lane; i < params.most; i += 32) to[i] = -1;
}

}  // namespace annulus::kernels
