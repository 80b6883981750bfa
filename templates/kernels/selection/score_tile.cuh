#ifndef ANNULUS_KERNELS_SELECTION_SCORE_TILE_CUH_
#define ANNULUS_KERNELS_SELECTION_SCORE_TILE_CUH_

// The products of 64 rows with 64 columns, by one CTA: each of 256 threads computes 4 x 4 of them,
// 16 rows and 16 columns apart. Each sum is a single chain of fused multiply-adds in the order of
// the calls, so the host gets the same bits.

#include "params/selection_params.h"

namespace annulus::kernels {

class ScoreTile {
 public:
  struct Panels {  // in shared memory
    float rows[kScoreTile][kScoreDepth + 1];
    float columns[kScoreTile][kScoreDepth + 1];
  };

  __device__ __forceinline__ int row(int a) const { return thread_ / 16 + 16 * a; }
  __device__ __forceinline__ int column(int b) const { return thread_ % 16 + 16 * b; }
  __device__ __forceinline__ float sum(int a, int b) const { return sums_[a][b]; }

  // Adds the products of elements [0, dim): row_element(line, d) and column_element(line, d) return
  // the elements of vectors 0 to 63. All threads of the CTA call it together. Requires: dim is a
  // multiple of kScoreDepth, as all head dims are.
  template <typename RowElement, typename ColumnElement>
  __device__ __forceinline__ void add(Panels& panels, int dim, const RowElement& row_element,
                                      const ColumnElement& column_element) {
    for (int first = 0; first < dim; first += kScoreDepth) {
      __syncthreads();
      for (int i = thread_; i < kScoreTile * kScoreDepth; i += kScoreThreads) {
        const int line = i / kScoreDepth;
        panels.rows[line][i % kScoreDepth] = row_element(line, first + i % kScoreDepth);
        panels.columns[line][i % kScoreDepth] = column_element(line, first + i % kScoreDepth);
      }
      __syncthreads();
#pragma unroll 4
      for (int d = 0; d < kScoreDepth; ++d) {
#pragma unroll
        for (int a = 0; a < 4; ++a) {
#pragma unroll
          for (int b = 0; b < 4; ++b) {
            sums_[a][b] =
                __fmaf_rn(panels.rows[row(a)][d], panels.columns[column(b)][d], sums_[a][b]);
          }
        }
      }
    }
  }

 private:
  const int thread_ = static_cast<int>(threadIdx.x);
  float sums_[4][4] = {};
};

}  // namespace annulus::kernels

#endif  // ANNULUS_KERNELS_SELECTION_SCORE_TILE_CUH_
