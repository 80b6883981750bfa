// Computes one vector for each block of rows of Q and of K: the mean or the maximum of its rows,
// element by element, in fp32. Rows are added in ascending order, so the host gets the same bits. A
// block without rows that count gets NaN or 0, and is not a candidate.
//
//   pool_blocks<<<(most blocks of the two, H + Hkv, B), kSelectionThreads>>>(PoolParams)

#include "params/selection_params.h"
#include "ptx/convert.cuh"

namespace annulus::kernels {

__global__ void __launch_bounds__(kSelectionThreads)
    pool_blocks(const __grid_constant__ PoolParams params) {
  // The grid's second dimension is first the heads of Q and then the heads of K. A thread takes two
  // columns, so 128 threads cover the largest head dim, 256.
  const int which = static_cast<int>(blockIdx.y) < params.tensors[0].heads ? 0 : 1;
  const SelectionTensor& tensor = params.tensors[which];
  const int head = static_cast<int>(blockIdx.y) - (which ? params.tensors[0].heads : 0);
  const int block = static_cast<int>(blockIdx.x);
  const int pair = static_cast<int>(threadIdx.x);
  if (block >= tensor.blocks || 2 * pair >= params.dim) return;
  const int block_begin = block * tensor.block;
  const int block_end = block_begin + tensor.block;
  const int first = block_begin > tensor.begin ? block_begin : tensor.begin;
  const int rows = (block_end < tensor.end ? block_end : tensor.end) - first;
  const unsigned short* from = static_cast<const unsigned short*>(tensor.data) +
                               blockIdx.z * tensor.batch + head * tensor.head + first * tensor.row +
                               2 * pair;
  // Strides are multiples of 8 elements and bases of 16 bytes (validate() checks this), so a pair
  // of columns is one aligned load.
  float low = 0.0f, high = 0.0f;
#pragma unroll 4
  for (int row = 0; row < rows; ++row) {
    const unsigned packed = *reinterpret_cast<const unsigned*>(from + row * tensor.row);
    float a, b;
    if (params.bfloat16) {
      a = __int_as_float(static_cast<int>(packed << 16));
      b = __int_as_float(static_cast<int>(packed & 0xffff0000u));
    } else {
      ptx::unpack_f16(a, b, packed);
    }
    if (params.maximum) {
      low = row == 0 ? a : fmaxf(low, a);
      high = row == 0 ? b : fmaxf(high, b);
    } else {
      low = __fadd_rn(low, a);
      high = __fadd_rn(high, b);
    }
  }
  if (!params.maximum) {
    low = __fdiv_rn(low, static_cast<float>(rows));
    high = __fdiv_rn(high, static_cast<float>(rows));
  }
  float* to = params.pooled[which] +
              ((static_cast<long long>(blockIdx.z) * tensor.heads + head) * tensor.blocks + block) *
                  params.dim +
              2 * pair;
  to[0] = low;
  to[1] = high;
}

}  // namespace annulus::kernels
