#ifndef ANNULUS_TILE_SCALED_SOFTMAX_CUH_
#define ANNULUS_TILE_SCALED_SOFTMAX_CUH_

// tile/softmax.cuh for operands with scales: groups of neighbouring keys have scales of their own,
// one of K, which multiplies their products, and one of V, which their probabilities carry to the
// second product. Probabilities reach that as 8-bit elements of at most 448, so they are taken 2^8
// times as large as they are, and relative to a unit of V that no group seen so far exceeds:
//
//   converted power = 2^(t - row max + 8) s_v / unit        sum += 2^(t - row max + 8)
//   output = sum of converted probabilities x V                 acc = output unit / 2^8
//
// A power that is converted from 2^-14 times the largest on keeps all bits of the format, and is 0
// from 2^-18 down.

#include "ptx/math.cuh"
#include "tile/softmax.cuh"

namespace annulus::tile {

enum : int { kProbabilityBits = 8 };

// What all rows of a step share.
template <int kGroups>
struct GroupWeights {
  float log2_weight[kGroups];  // of s_v / unit, and kProbabilityBits
  float inverse[kGroups];      // unit / s_v
};

// Takes the scales of V of a step into `unit` (above 0) and returns what they make; `correction` is
// what the output up to now has to be multiplied with. A weight below 2^-40 counts as that: its
// probabilities become 0, and their sum is still finite. NaN stays.
template <int kGroups>
__device__ __forceinline__ GroupWeights<kGroups> online_softmax_groups(
    const float (&scales)[kGroups], float& unit, float& correction) {
  constexpr float kLeast = 9.094947e-13f;  // 2^-40
  const float before = unit;
#pragma unroll
  for (int g = 0; g < kGroups; ++g) unit = fmaxf(unit, scales[g]);
  const float inverse = ptx::reciprocal(unit);
  correction = before * inverse;
  GroupWeights<kGroups> weights;
#pragma unroll
  for (int g = 0; g < kGroups; ++g) {
    const float share = scales[g] * inverse;
    const float weight = share < kLeast ? kLeast : share;
    weights.log2_weight[g] = ptx::log2(weight) + static_cast<float>(kProbabilityBits);
    weights.inverse[g] = ptx::reciprocal(weight);
  }
  return weights;
}

// weigh() with `factors` of a row half and group, which with kPositiveScale are still to be
// multiplied with, and above 0. Sums are 2^kProbabilityBits times as large.
template <Score kScore, int kGroups, int kPieces>
__device__ __forceinline__ void online_softmax_scaled(RowState<1>& state,
                                                      float (&scores)[1][kPieces][4],
                                                      const float (&factors)[2][kGroups],
                                                      const GroupWeights<kGroups>& weights,
                                                      float (&correction)[1][2]) {
  constexpr int kGroupPieces = kPieces / kGroups;
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    float row_max = minus_infinity();
#pragma unroll
    for (int g = 0; g < kGroups; ++g) {
      const int first = g * kGroupPieces;
      float of_group = fmaxf(scores[0][first][2 * half], scores[0][first][2 * half + 1]);
#pragma unroll
      for (int c = first + 1; c < first + kGroupPieces; ++c) {
        of_group = fmaxf(of_group, fmaxf(scores[0][c][2 * half], scores[0][c][2 * half + 1]));
      }
      if constexpr (kScore == Score::kPositiveScale) of_group *= factors[half][g];
      row_max = fmaxf(row_max, of_group);
    }
    row_max = fmaxf(state.row_max[0][half], quad_max(row_max));
    const float base = row_max == minus_infinity() ? 0.0f : row_max;
    correction[0][half] = ptx::exp2(state.row_max[0][half] - base);
    state.row_max[0][half] = row_max;
    float sum = 0.0f;
#pragma unroll
    for (int g = 0; g < kGroups; ++g) {
      const float offset = weights.log2_weight[g] - base;
      float of_group = 0.0f;
#pragma unroll
      for (int c = g * kGroupPieces; c < (g + 1) * kGroupPieces; ++c) {
#pragma unroll
        for (int i = 2 * half; i < 2 * half + 2; ++i) {
          if constexpr (kScore == Score::kPositiveScale) {
            scores[0][c][i] = ptx::exp2(fmaf(scores[0][c][i], factors[half][g], offset));
          } else {
            scores[0][c][i] = ptx::exp2(scores[0][c][i] + offset);
          }
          of_group += scores[0][c][i];
        }
      }
      sum += of_group * weights.inverse[g];
    }
    state.sum[0][half] = state.sum[0][half] * correction[0][half] + sum;
  }
}

}  // namespace annulus::tile

#endif  // ANNULUS_TILE_SCALED_SOFTMAX_CUH_
