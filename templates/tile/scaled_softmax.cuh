#ifndef ANNULUS_TILE_SCALED_SOFTMAX_CUH_
#define ANNULUS_TILE_SCALED_SOFTMAX_CUH_

// The online softmax (tile/softmax.cuh) for operands with scales. Groups of neighbouring keys have
// scales of their own: one of K, which multiplies their products, and one of V, which multiplies
// their probabilities in the second product. There, probabilities are e4m3 elements of at most 448,
// so they are multiplied by 2^8. The scales of V are taken relative to a unit, the largest scale of
// V so far:
//
//   converted probability = 2^(t - row max + 8) s_v / unit     sum += 2^(t - row max + 8)
//   output = sum of converted probabilities x V                acc = output unit / 2^8
//
// A converted probability of at least 2^-14 of the largest is a normal e4m3 number and keeps all
// bits of the format; one of 2^-18 or less becomes 0.

#include "ptx/math.cuh"
#include "tile/softmax.cuh"

namespace annulus::tile {

enum : int { kProbabilityBits = 8 };

// The weights of a step's groups of keys, the same for all rows.
template <int kGroups>
struct GroupWeights {
  float log2_weight[kGroups];  // log2(s_v / unit) + kProbabilityBits
  float inverse[kGroups];      // unit / s_v
};

// Raises `unit` (above 0) to the largest scale of V of a step and returns the weights of its
// groups; `correction` is the factor by which the output has to be rescaled. A weight below 2^-40
// is raised to 2^-40: its converted probabilities are 0 anyway, and its inverse, which the sum
// needs, stays finite. NaN stays NaN.
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

// online_softmax() for scaled operands. `factors` has one factor for each half of the rows and each
// group; with kPositiveScale the scores are not multiplied by it yet, and it is above 0. Otherwise
// `factors` is not read. The weight of a group is added to the exponent, which costs nothing for an
// element; the sum of a group is then divided by it (times `inverse`), so row sums do not contain
// scales of V. Sums are 2^kProbabilityBits times as large. Row max -inf is treated as in
// tile/softmax.cuh.
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
