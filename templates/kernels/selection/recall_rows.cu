// Computes recall: the share of each row's attention mass in the pairs that were computed. It is e
// to the power of the LSE of the computed pairs minus the LSE of all pairs. A row that sees nothing
// has recall 1.
//
//   recall_rows<<<ceil(count / kSelectionThreads), kSelectionThreads>>>(RecallParams)

#include "params/importance_params.h"
#include "ptx/math.cuh"
#include "tile/softmax.cuh"

namespace annulus::kernels {

__global__ void __launch_bounds__(kSelectionThreads)
    recall_rows(const __grid_constant__ RecallParams params) {
  const long long row = static_cast<long long>(blockIdx.x) * kSelectionThreads + threadIdx.x;
  if (row >= params.count) return;
  const float all = params.all[row];
  const float seen = params.lse[row];
  params.recall[row] =
      all == tile::minus_infinity() ? 1.0f : ptx::exp2((seen - all) * params.lse_factor);
}

}  // namespace annulus::kernels
