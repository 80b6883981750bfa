#ifndef ANNULUS_TILE_POSITION_TERMS_CUH_
#define ANNULUS_TILE_POSITION_TERMS_CUH_

// What a score gains by the distance of its key from its query: ALiBi's slope times k - q, and an
// entry of a table by q - k. In base 2, as the scores are by then; before masking.

#include "kernels/attention_params.h"

namespace annulus::tile {

template <bool kAlibi, bool kBias>
class PositionTerms {
 public:
  __device__ __forceinline__ PositionTerms(const kernels::ScoreParams& params, unsigned head) {
    if constexpr (kAlibi) {
      slope_ = params.slopes[head % static_cast<unsigned>(params.slope_count)];
    }
    if constexpr (kBias) {
      reach_ = params.bias_reach;
      table_ = params.bias +
               head % static_cast<unsigned>(params.bias_count) * (2LL * params.bias_reach + 1);
    }
  }

  // `distance` is k - q of the lane's first element.
  template <int kRowTiles, int kPieces>
  __device__ __forceinline__ void add(float (&scores)[kRowTiles][kPieces][4], int distance) const {
#pragma unroll
    for (int r = 0; r < kRowTiles; ++r) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        // Exact up to 2^24, and so are the sums below; further away a float's relative error.
        const float of_row = static_cast<float>(distance - (16 * r + 8 * half));
#pragma unroll
        for (int i = 0; i < 2 * kPieces; ++i) {
          const int column = i / 2 * 8 + i % 2;
          float& score = scores[r][i / 2][2 * half + i % 2];
          if constexpr (kAlibi) score = fmaf(slope_, of_row + static_cast<float>(column), score);
          if constexpr (kBias) score += entry(distance - (16 * r + 8 * half) + column);
        }
      }
    }
  }

  // The same where positions are read: those of the tile's rows and columns, `row` and `column` this
  // lane's first ones in the tile.
  template <int kRowTiles, int kPieces>
  __device__ __forceinline__ void add_placed(float (&scores)[kRowTiles][kPieces][4],
                                             const int* q_positions, const int* k_positions,
                                             int row, int column) const {
    int q[kRowTiles][2];
#pragma unroll
    for (int r = 0; r < kRowTiles; ++r) {
#pragma unroll
      for (int half = 0; half < 2; ++half) q[r][half] = q_positions[row + 16 * r + 8 * half];
    }
#pragma unroll
    for (int i = 0; i < 2 * kPieces; ++i) {
      const int k = k_positions[column + i / 2 * 8 + i % 2];
#pragma unroll
      for (int r = 0; r < kRowTiles; ++r) {
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          float& score = scores[r][i / 2][2 * half + i % 2];
          if constexpr (kAlibi) score = fmaf(slope_, static_cast<float>(k - q[r][half]), score);
          if constexpr (kBias) score += entry(k - q[r][half]);
        }
      }
    }
  }

 private:
  // Distances beyond the table's reach take its ends.
  __device__ __forceinline__ float entry(int distance) const {
    const int index = distance < -reach_ ? 2 * reach_ : distance > reach_ ? 0 : reach_ - distance;
    return table_[index];
  }

  float slope_ = 0.0f;
  const float* table_ = nullptr;
  int reach_ = 0;
};

}  // namespace annulus::tile

#endif  // ANNULUS_TILE_POSITION_TERMS_CUH_
