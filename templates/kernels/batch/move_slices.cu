// Copies O and LSE, or states, into slices for other ranks, or out of slices that came from other
// ranks.
//
//   move_slices<Shape><<<ceil(rows x H / kMergeHeads), kMergeThreads>>>(SlicesParams)
//
// Eight threads share a row of a head, as in merge_outputs. Shape has the direction and the form;
// README.md lists what it must define.

#include "params/slices_params.h"
#include "ptx/memory.cuh"
#include "tile/element.cuh"
#include "tile/softmax.cuh"

namespace annulus::kernels {

template <typename Shape>
__global__ void __launch_bounds__(kMergeThreads)
    move_slices(const __grid_constant__ SlicesParams params) {
  const int thread = static_cast<int>(threadIdx.x % kRowThreads);
  const int at =
      static_cast<int>(blockIdx.x) * kMergeHeads + static_cast<int>(threadIdx.x / kRowThreads);
  const int row = at / params.heads;
  const int head = at - row * params.heads;
  if (row >= params.rows) return;

  // The slice with this row or head: the last slice that begins at or before it.
  const bool of_rows = params.of_rows != 0;
  const long long number = of_rows ? row : head;
  const long long all = of_rows ? params.rows : params.heads;
  int slice = 0;
#pragma unroll 1
  for (int i = 1; i < params.count; ++i) {
    if (i * all / params.count <= number) slice = i;
  }
  const long long first = slice * all / params.count;
  const long long end = (slice + 1) * all / params.count;
  const long long heads = of_rows ? params.heads : end - first;
  const long long index = of_rows ? (row - first) * heads + head : row * heads + head - first;

  char* const begin = params.slices + params.begins[slice];
  float* const sliced_lse = reinterpret_cast<float*>(begin + params.lses[slice]) + index;
  constexpr int kPieceBytes = 16;
  constexpr int kBytes = Shape::kStates ? 4 : tile::kElementBytes;  // bytes of an element
  char* const sliced = begin + index * params.chunks * kPieceBytes;
  char* const whole =
      static_cast<char*>(params.o) + (row * params.o_row + head * params.o_head) * kBytes;
  // O of a row that has seen no key may be anything, so it is not read and zeros are written
  // instead. The same holds for m and acc of a state.
  bool empty = false;
  if (params.lse != nullptr) {
    const long long number_at = row * params.lse_row + head * params.lse_head;
    float* const lse = params.lse + number_at;
    float value = Shape::kPacks ? *lse : *sliced_lse;
    if constexpr (Shape::kStates) {
      float* const l = params.l + number_at;
      float* const sliced_l = sliced_lse + (of_rows ? end - first : params.rows) * heads;
      const float sum = Shape::kPacks ? *l : *sliced_l;
      empty = Shape::kPacks && sum == 0.0f;
      if (empty) value = tile::minus_infinity();
      if (thread == 0) *(Shape::kPacks ? sliced_l : l) = sum;
    } else {
      empty = Shape::kPacks && value == tile::minus_infinity();
    }
    if (thread == 0) *(Shape::kPacks ? sliced_lse : lse) = value;
  }
#pragma unroll 1
  for (int chunk = thread; chunk < params.chunks; chunk += kRowThreads) {
    const int offset = chunk * kPieceBytes;
    ptx::Words4 piece = {};
    if (!empty) piece = ptx::load_global_16((Shape::kPacks ? whole : sliced) + offset);
    ptx::store_global_16((Shape::kPacks ? sliced : whole) + offset, piece);
  }
}

}  // namespace annulus::kernels
