// Copies the rows of K and V that other ranks of a ring need, one after another, for any strides of
// the tensors: [rows][B][K of all heads | V of all heads]. A CTA takes kPackRows packed rows of one
// tensor and one batch; its threads take pieces of 16 bytes.
//
//   pack_rows<<<(ceil(rows / kPackRows), 2, batches), kPackThreads>>>(PackParams)
//
// A launch packs `batches` of the B batches: those from which `from` and `to` start.

#include "params/pack_params.h"
#include "ptx/memory.cuh"

namespace annulus::kernels {

// The row of the tensors that becomes packed row `place`: it is found from the list's last entry
// that begins at or before `place`.
__device__ __forceinline__ int source_row(const PackParams& params, int place) {
  int first = 0;
  for (int count = params.list_length; count > 1;) {
    const int half = count / 2;
    if (params.list[first + half].place <= place) {
      first += half;
      count -= half;
    } else {
      count = half;
    }
  }
  return params.list[first].row + place - params.list[first].place;
}

__global__ void __launch_bounds__(kPackThreads)
    pack_rows(const __grid_constant__ PackParams params) {
  __shared__ int source[kPackRows];
  const PackTensor& tensor = params.tensors[blockIdx.y];
  const int first_place = static_cast<int>(blockIdx.x) * kPackRows;
  const int left = params.rows - first_place;
  const int rows = left < kPackRows ? left : kPackRows;
  const int thread = static_cast<int>(threadIdx.x);
  if (thread < rows) source[thread] = source_row(params, first_place + thread);
  __syncthreads();
  const int pieces_of_row = params.heads * tensor.pieces;
  const char* from = static_cast<const char*>(tensor.from) + blockIdx.z * tensor.batch;
  char* to = static_cast<char*>(params.to) +
             (static_cast<long long>(blockIdx.z) * params.width + tensor.offset) * 16;
  const long long packed_row = static_cast<long long>(params.batch) * params.width * 16;
  for (int i = thread; i < rows * pieces_of_row; i += kPackThreads) {
    const int row = i / pieces_of_row;
    const int rest = i - row * pieces_of_row;
    const int head = rest / tensor.pieces;
    const int piece = rest - head * tensor.pieces;
    ptx::store_global_16(
        to + (first_place + row) * packed_row + static_cast<long long>(rest) * 16,
        ptx::load_global_16(from + source[row] * tensor.row + head * tensor.head + piece * 16));
  }
}

}  // namespace annulus::kernels
