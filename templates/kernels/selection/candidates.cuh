#ifndef ANNULUS_KERNELS_SELECTION_CANDIDATES_CUH_
#define ANNULUS_KERNELS_SELECTION_CANDIDATES_CUH_

// Candidates: the blocks that a row may choose from.

#include "params/selection_params.h"
#include "tile/bits.cuh"

namespace annulus::kernels {

// The candidates of one row of blocks, for the head and batch of this CTA (blockIdx.y and z): the
// blocks that the pattern shows, and after a coarse pass only the blocks inside its chosen blocks.
class CandidateRow {
 public:
  __device__ __forceinline__ CandidateRow(const CandidateParams& params, int row)
      : factor_(params.coarse_factor) {
    const long long head = blockIdx.y;
    visible_ = params.visible + (head % params.visible_heads * params.rows + row) * params.words;
    if (params.coarse == nullptr) return;
    const long long list = static_cast<long long>(blockIdx.z) * params.heads + head;
    coarse_ = params.coarse + (list * params.coarse_rows + row / factor_) * params.coarse_words;
  }
  __device__ __forceinline__ bool has(int column) const {
    if (!tile::has_bit(visible_, column)) return false;
    return coarse_ == nullptr || tile::has_bit(coarse_, column / factor_);
  }

 private:
  const unsigned* visible_;
  const unsigned* coarse_ = nullptr;
  int factor_;
};

// Whether a rectangle of blocks holds a candidate. All threads of a CTA call it together, because
// it has a barrier; columns beyond the last have no bits.
__device__ __forceinline__ bool any_candidate(const CandidateParams& params, int first_row,
                                              int rows, int first_column, int columns,
                                              int threads) {
  bool any = false;
  for (int i = static_cast<int>(threadIdx.x); i < rows * columns && !any; i += threads) {
    const int row = first_row + i / columns;
    const int column = first_column + i % columns;
    any = row < params.rows && column < params.words * 32 && CandidateRow(params, row).has(column);
  }
  return __syncthreads_or(any);
}

}  // namespace annulus::kernels

#endif  // ANNULUS_KERNELS_SELECTION_CANDIDATES_CUH_
