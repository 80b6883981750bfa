#ifndef ANNULUS_TILE_POSITION_TERMS_CUH_
#define ANNULUS_TILE_POSITION_TERMS_CUH_

// Terms that depend on the distance of a key from its query: ALiBi's slope times k - q, and an
// entry of a table at q - k. They are added before masking, in the base of the scores at that
// point: the host has folded log2(e) in, unless a score expression follows.

#include "params/attention_params.h"
#include "tile/turns.cuh"

namespace annulus::tile {

// In a general kernel (tile/general.cuh) a launch may have neither, one or both.
template <bool kAlibi, bool kBias, bool kGeneral = false>
class PositionTerms {
 public:
  __device__ __forceinline__ PositionTerms(const kernels::ScoreParams& params, unsigned head) {
    if (kAlibi && (!kGeneral || params.slopes != nullptr)) {
      slope_ = params.slopes[head % static_cast<unsigned>(params.slope_count)];
    }
    if (kBias && (!kGeneral || params.bias != nullptr)) {
      reach_ = params.bias_reach;
      table_ = params.bias +
               head % static_cast<unsigned>(params.bias_count) * (2LL * params.bias_reach + 1);
    }
  }

  // Adds the terms to a tile. `distance` is k - q of the lane's first element. A table needs a load
  // for each element, so it takes a few pieces at a time; code for slopes alone is unrolled.
  template <int kRowTiles, int kPieces>
  __device__ __forceinline__ void add(float (&scores)[kRowTiles][kPieces][4], int distance) const {
    if constexpr (kBias) {
      in_turns<few_of(kPieces)>(scores, [&](float(&piece)[4], int row, int column) {
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          add_to(piece[i], distance + column + i % 2 - (row + i / 2 * 8));
        }
      });
    } else {
#pragma unroll
      for (int r = 0; r < kRowTiles; ++r) {
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          // Distances up to 2^24 are exact, and so are the sums below; larger ones have the
          // relative error of a float.
          const float of_row = static_cast<float>(distance - (16 * r + 8 * half));
#pragma unroll
          for (int i = 0; i < 2 * kPieces; ++i) {
            float& score = scores[r][i / 2][2 * half + i % 2];
            score = fmaf(slope_, of_row + static_cast<float>(i / 2 * 8 + i % 2), score);
          }
        }
      }
    }
  }

  // Adds the terms to one row of a fragment: the elements of `half`, which belong to the query at
  // position q. `positions` has the positions of the lane's columns (tile/key_positions.cuh). A
  // table takes a few pieces at a time here too.
  template <int kPieces, typename Positions>
  __device__ __forceinline__ void add_half(float (&scores)[kPieces][4], int half, int q,
                                           const Positions& positions) const {
    in_turns<kBias ? few_of(kPieces) : kPieces>(
        reinterpret_cast<float(&)[1][kPieces][4]>(scores), [&](float(&piece)[4], int, int column) {
#pragma unroll
          for (int i = 0; i < 2; ++i) add_to(piece[2 * half + i], positions.at(column + i) - q);
        });
  }

  // add() for positions of the tile's rows and columns that are read from memory. `row` and
  // `column` are the lane's first row and column in the tile.
  template <int kRowTiles, int kPieces>
  __device__ __forceinline__ void add_placed(float (&scores)[kRowTiles][kPieces][4],
                                             const int* q_positions, const int* k_positions,
                                             int row, int column) const {
    in_turns<few_of(kPieces)>(scores, [&](float(&piece)[4], int piece_row, int piece_column) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        add_to(piece[i], k_positions[column + piece_column + i % 2] -
                             q_positions[row + piece_row + i / 2 * 8]);
      }
    });
  }

 private:
  __device__ __forceinline__ void add_to(float& score, int distance) const {
    if constexpr (kAlibi) score = fmaf(slope_, static_cast<float>(distance), score);
    if constexpr (kBias) {
      if (!kGeneral || table_ != nullptr) score += entry(distance);
    }
  }

  // The table's entry at q - k = -distance. Distances beyond its reach take its ends.
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
