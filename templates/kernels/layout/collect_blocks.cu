// Makes the CSR arrays of a BlockLayout from classes of blocks. It is launched twice. The first
// launch counts the blocks of each line. Then scan_counts computes the begin of each line, and the
// second launch writes the blocks. One warp takes one line, which is a row of blocks of one head.
//
//   collect_blocks<<<ceil(lines / kLayoutWarps), kLayoutThreads>>>(CollectParams)

#include "params/layout_params.h"

namespace annulus::kernels {

__global__ void __launch_bounds__(kLayoutThreads)
    collect_blocks(const __grid_constant__ CollectParams params) {
  const int lane = static_cast<int>(threadIdx.x % 32);
  const int line = static_cast<int>(blockIdx.x * kLayoutWarps + threadIdx.x / 32);
  if (line >= params.lines) return;
  const unsigned char* classes = params.classes + static_cast<long long>(line) * params.columns;
  const bool fill = params.indices != nullptr;
  long long place = fill ? params.indptr[line] : 0;
  bool any = false;
  for (int first = 0; first < params.columns; first += 32) {
    const int column = first + lane;
    const int kind = column < params.columns ? classes[column] : 0;
    const unsigned kept = __ballot_sync(0xffffffffu, kind != 0);
    if (fill && kind != 0) {
      const long long at = place + __popc(kept & ((1u << lane) - 1));
      params.indices[at] = column;
      params.partial[at] = kind == 2;
    }
    any |= kind == 2;
    place += __popc(kept);
  }
  if (fill) return;
  if (lane == 0) params.indptr[line + 1] = place;
  if (__any_sync(0xffffffffu, any) && lane == 0) atomicOr(params.any_partial, 1);
}

}  // namespace annulus::kernels
