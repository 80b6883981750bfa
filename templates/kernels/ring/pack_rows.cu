// Copies the K and V of a shard, whatever their strides, into one contiguous buffer, which a ring
// sends. A CTA takes kPackRows rows of one tensor and one batch; its threads take pieces of 16
// bytes.
//
//   pack_rows<<<(ceil(S / kPackRows), 2, B), kPackThreads>>>(PackParams)

#include "params/pack_params.h"
#include "ptx/memory.cuh"

namespace annulus::kernels {

__global__ void __launch_bounds__(kPackThreads)
    pack_rows(const __grid_constant__ PackParams params) {
  const PackTensor& tensor = params.tensors[blockIdx.y];
  const int first_row = static_cast<int>(blockIdx.x) * kPackRows;
  const int left = params.rows - first_row;
  const int rows = left < kPackRows ? left : kPackRows;
  const int pieces_of_row = params.heads * tensor.pieces;
  const char* from =
      static_cast<const char*>(tensor.from) + blockIdx.z * tensor.batch + first_row * tensor.row;
  char* to = static_cast<char*>(tensor.to) +
             (static_cast<long long>(blockIdx.z) * params.rows + first_row) * pieces_of_row * 16;
  for (int i = static_cast<int>(threadIdx.x); i < rows * pieces_of_row; i += kPackThreads) {
    const int row = i / pieces_of_row;
    const int rest = i - row * pieces_of_row;
    const int head = rest / tensor.pieces;
    const int piece = rest - head * tensor.pieces;
    ptx::store_global_16(
        to + static_cast<long long>(i) * 16,
        ptx::load_global_16(from + row * tensor.row + head * tensor.head + piece * 16));
  }
}

}  // namespace annulus::kernels
