#ifndef ANNULUS_KERNELS_WGMMA_SCALES_CUH_
#define ANNULUS_KERNELS_WGMMA_SCALES_CUH_

// How a consumer computes probabilities from products. The first class is for 16-bit elements,
// which have no scales. The others are for 8-bit elements with the scales of Q, K and V
// (ScaleParams): one if K and V have a scale for a head, and one if groups of keys have scales of
// their own. All have the same functions, so the consumer's code is the same:
//
//   begin, enter              at the start of a work, and for a state that is carried in
//   read                      before the products of a step: loads its scales
//   finish, online_softmax    after the products of a step
//   unit                      what the output is relative to, besides its row max
//   leave                     after the last step
//
// tile/scaled_softmax.cuh explains the unit, and why probabilities are 2^8 times as large.

#include "kernels/wgmma/work.cuh"
#include "tile/general.cuh"
#include "tile/scaled_softmax.cuh"
#include "tile/score.cuh"
#include "tile/softmax.cuh"

namespace annulus::kernels {

enum class ScaleKind { kNone, kOfHeads, kOfGroups };

template <typename Shape>
__device__ __forceinline__ constexpr ScaleKind scale_kind() {
  if constexpr (Shape::Element::kBytes != 1) {
    return ScaleKind::kNone;
  } else {
    return Shape::kScaleColumns == 0 ? ScaleKind::kOfHeads : ScaleKind::kOfGroups;
  }
}

// The scale, or NaN if it is not from 0 to 2^125, the largest whose inverse is a normal number.
__device__ __forceinline__ float checked_scale(float scale) {
  constexpr float kMax = 4.2535296e37f;  // 2^125
  return scale >= 0.0f && scale <= kMax ? scale : tile::not_a_number();
}

// The factor of the products with keys whose scale is `of_keys`. A factor of 0 would turn a masked
// score into NaN (0 x -inf) if the exponent applies it, so it is raised to the smallest normal
// number. The comparison leaves NaN as it is.
template <typename Shape>
__device__ __forceinline__ float factor_of_products(float of_query, float of_keys) {
  const float factor = of_query * of_keys;
  if constexpr (static_cast<Score>(Shape::kScore) != Score::kPositiveScale) return factor;
  constexpr float kLeast = 1.1754944e-38f;  // the smallest normal number
  return factor <= kLeast ? kLeast : factor;
}

// The head of K and V of a head of Q, counted over all batches.
__device__ __forceinline__ int key_head_of(const AttentionParams& params, int batch, int head) {
  return batch * (params.heads / params.group) + head / params.group;
}

__device__ __forceinline__ constexpr float powers_of_one() { return 1 << tile::kProbabilityBits; }

// Scales the products of tile `b` of a step by the factors of its groups of keys, unless softmax
// does it in the exponent (kPositiveScale).
template <typename Shape, int kGroups, int kPieces>
__device__ __forceinline__ void scale_products(const AttentionParams& params,
                                               float (&scores)[1][kPieces][4],
                                               const float (&factors)[2][kGroups],
                                               int first_group) {
  constexpr Score kScore = static_cast<Score>(Shape::kScore);
  if constexpr (kScore != Score::kPositiveScale) {
#pragma unroll
    for (int c = 0; c < kPieces; ++c) {
      int g = first_group;
      if constexpr (kGroups > 1) g += c * 8 / Shape::kScaleColumns;
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        float t = scores[0][c][i] * factors[i / 2][g];
        if constexpr (kScore == Score::kSoftcap) t = params.softcap * tile::tanh(t);
        scores[0][c][i] = t;
      }
    }
  }
}

// Multiplies the output by `factor` and takes the factor of 2^8 out of the sums. From 2^24 on,
// neighbouring fp32 numbers are 2 apart. A probability relative to a rounded row max may then be
// larger than 448, the largest e4m3 number, and the part that saturation cuts off would be missing
// in the output but not in the sum. Such a row becomes NaN instead of wrong.
template <int kPieces>
__device__ __forceinline__ void leave_scaled(tile::RowState<1>& state,
                                             float (&output)[1][kPieces][4], float factor) {
  constexpr float kMaxScore = 16777216.0f;  // 2^24
  float factors[1][2];
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    state.sum[0][half] *= 1 / powers_of_one();
    const float row_max = state.row_max[0][half];
    const bool beyond = fabsf(row_max) >= kMaxScore && row_max != tile::minus_infinity();
    factors[0][half] = beyond ? tile::not_a_number() : factor;
  }
  tile::rescale(output, factors);
}

template <typename Shape, ScaleKind kKind = scale_kind<Shape>()>
class Scales {
 public:
  __device__ __forceinline__ void begin(const AttentionParams&, int, int, int) {}
  template <int kPieces>
  __device__ __forceinline__ void enter(tile::RowState<1>&, float (&)[1][kPieces][4]) const {}
  template <typename Row>
  __device__ __forceinline__ void read(const AttentionParams&, const Row&, int) {}
  template <int kPieces>
  __device__ __forceinline__ void finish(const AttentionParams& params,
                                         float (&scores)[1][kPieces][4], int) const {
    tile::finish_products<Shape>(scores, params);
  }
  template <typename Weighing, int kPieces>
  __device__ __forceinline__ void online_softmax(const AttentionParams& params,
                                                 tile::RowState<1>& state,
                                                 float (&scores)[1][kPieces][4],
                                                 float (&correction)[1][2]) const {
    tile::online_softmax<Weighing::score()>(
        state, scores, tile::softmax_factor<Shape, Weighing>(params), correction);
  }
  __device__ __forceinline__ float unit() const { return 1.0f; }
  template <int kPieces>
  __device__ __forceinline__ void leave(const AttentionParams&, int, int, tile::RowState<1>&,
                                        float (&)[1][kPieces][4]) const {}
};

// Q, K and V have one scale for a head, and no state is carried in. No step loads scales: the ones
// of Q and K are factors of the exponent, and the scale of V multiplies the output at the end.
template <typename Shape>
class Scales<Shape, ScaleKind::kOfHeads> {
  static_assert(!Shape::kCarryIn, "a carried state would have to be divided by the scale of V");

 public:
  __device__ __forceinline__ void begin(const AttentionParams& params, int batch, int head, int) {
    const ScaleParams& scales = params.scales;
    const float of_query =
        scales.q ? checked_scale(scales.q[static_cast<long long>(batch) * params.heads + head]) : 1;
    const float of_keys = scales.k ? checked_scale(scales.k[key_head_of(params, batch, head)]) : 1;
    factor_ = factor_of_products<Shape>(params.scale * of_query, of_keys);
  }
  template <typename Row>
  __device__ __forceinline__ void read(const AttentionParams&, const Row&, int) {}
  template <int kPieces>
  __device__ __forceinline__ void finish(const AttentionParams& params,
                                         float (&scores)[1][kPieces][4], int) const {
    const float factors[2][1] = {{factor_}, {factor_}};
    scale_products<Shape>(params, scores, factors, 0);
  }
  template <typename Weighing, int kPieces>
  __device__ __forceinline__ void online_softmax(const AttentionParams&, tile::RowState<1>& state,
                                                 float (&scores)[1][kPieces][4],
                                                 float (&correction)[1][2]) const {
    constexpr bool kOfScale = Weighing::score() == static_cast<Score>(Shape::kScore);
    const float factor = kOfScale ? factor_ : Weighing::factor(0);
    const float factors[2][1] = {{factor}, {factor}};
    constexpr tile::GroupWeights<1> kWeights = {{static_cast<float>(tile::kProbabilityBits)},
                                                {1.0f}};
    tile::online_softmax_scaled<Weighing::score()>(state, scores, factors, kWeights, correction);
  }
  __device__ __forceinline__ float unit() const { return 1.0f; }
  template <int kPieces>
  __device__ __forceinline__ void leave(const AttentionParams& params, int batch, int head,
                                        tile::RowState<1>& state,
                                        float (&output)[1][kPieces][4]) const {
    const ScaleParams& scales = params.scales;
    const float of_values =
        scales.v ? checked_scale(scales.v[key_head_of(params, batch, head)]) : 1;
    leave_scaled(state, output, of_values * (1 / powers_of_one()));
  }

 private:
  float factor_;
};

// Groups of kScaleColumns keys have scales of their own, which each step loads.
template <typename Shape>
class Scales<Shape, ScaleKind::kOfGroups> {
  enum : int {
    kBlocks = Shape::kBlocks,
    kBlockColumns = Shape::kColumns / kBlocks,
    kBlockGroups = kBlockColumns / Shape::kScaleColumns,
    kGroups = kBlocks * kBlockGroups,
  };
  static_assert(kBlockColumns % Shape::kScaleColumns == 0 && Shape::kScaleColumns % 8 == 0,
                "a group of keys has one scale");

 public:
  // Reads the scales of Q for the lane's rows `first_row` and first_row + 8. Rows beyond Sq read
  // the scale of the last row; they are never stored.
  __device__ __forceinline__ void begin(const AttentionParams& params, int batch, int head,
                                        int first_row) {
    const ScaleParams& scales = params.scales;
    const long long query = static_cast<long long>(batch) * params.heads + head;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int row = first_row + 8 * half < params.seq_q ? first_row + 8 * half : params.seq_q - 1;
      const float scale =
          scales.q ? checked_scale(scales.q[query * scales.q_blocks + (row >> scales.q_shift)]) : 1;
      query_[half] = params.scale * scale;
    }
    key_head_ = key_head_of(params, batch, head);
    unit_ = first_unit();
  }

  // Converts a carried state, which has no unit, to this work's unit and its factor of 2^8. leave()
  // converts back.
  template <int kPieces>
  __device__ __forceinline__ void enter(tile::RowState<1>& state,
                                        float (&output)[1][kPieces][4]) const {
    const float factor = powers_of_one() / first_unit();
    const float factors[1][2] = {{factor, factor}};
#pragma unroll
    for (int half = 0; half < 2; ++half) state.sum[0][half] *= powers_of_one();
    tile::rescale(output, factors);
  }
  template <int kPieces>
  __device__ __forceinline__ void leave(const AttentionParams&, int, int, tile::RowState<1>& state,
                                        float (&output)[1][kPieces][4]) const {
    leave_scaled(state, output, unit_ * (1 / powers_of_one()));
  }

  // Loads the scales of a step, and updates the unit and its correction. It is called before the
  // products, so that the loads overlap with them. If the last step has fewer tiles, the missing
  // tile uses the scales of the row's last tile. Keys that no row sees use the scale of the nearest
  // key that some row sees.
  template <typename Row>
  __device__ __forceinline__ void read(const AttentionParams& params, const Row& row, int step) {
    static_assert(static_cast<Positions>(Shape::kPositions) != Positions::kTwoSegments,
                  "tiles of two segments begin at other keys");
    const ScaleParams& scales = params.scales;
    float values[kGroups];
#pragma unroll
    for (int b = 0; b < kBlocks; ++b) {
      const int index = step * kBlocks + b;
      const int first = row.tile(index < row.count ? index : row.count - 1).column * kBlockColumns;
#pragma unroll
      for (int i = 0; i < kBlockGroups; ++i) {
        const int g = b * kBlockGroups + i;
        const int column = first + i * Shape::kScaleColumns;
        const int last = params.key_begin + params.key_count - 1;
        const int from = column > params.key_begin ? column : params.key_begin;
        const int key = from < last ? from : last;
        const float of_keys =
            scales.k ? checked_scale(scales.k[static_cast<long long>(key_head_) * scales.k_blocks +
                                              (key >> scales.k_shift)])
                     : 1;
        values[g] =
            scales.v ? checked_scale(scales.v[static_cast<long long>(key_head_) * scales.v_blocks +
                                              (key >> scales.v_shift)])
                     : 1;
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          factors_[half][g] = factor_of_products<Shape>(query_[half], of_keys);
        }
      }
    }
    weights_ = tile::online_softmax_groups(values, unit_, unit_correction_);
  }

  template <int kPieces>
  __device__ __forceinline__ void finish(const AttentionParams& params,
                                         float (&scores)[1][kPieces][4], int b) const {
    scale_products<Shape>(params, scores, factors_, b * kBlockGroups);
  }
  // If there is a score expression, `Weighing` has the factor that converts its results to base-2
  // scores. finish() has applied the scales of Q and K before it.
  template <typename Weighing, int kPieces>
  __device__ __forceinline__ void online_softmax(const AttentionParams&, tile::RowState<1>& state,
                                                 float (&scores)[1][kPieces][4],
                                                 float (&correction)[1][2]) const {
    constexpr bool kOfScale = Weighing::score() == static_cast<Score>(Shape::kScore);
    float factors[2][kGroups];
#pragma unroll
    for (int half = 0; half < 2; ++half) {
#pragma unroll
      for (int g = 0; g < kGroups; ++g) {
        factors[half][g] = kOfScale ? factors_[half][g] : Weighing::factor(0);
      }
    }
    tile::online_softmax_scaled<Weighing::score()>(state, scores, factors, weights_, correction);
    correction[0][0] *= unit_correction_;
    correction[0][1] *= unit_correction_;
  }
  __device__ __forceinline__ float unit() const { return unit_; }

 private:
  // The unit before any scale of V is seen. It must not be 0, because its inverse is taken. With a
  // carried state it is 2^-60: the state is divided by it, so values up to 2^59 stay finite.
  // Otherwise it is the smallest normal number, below all scales that matter.
  static __device__ __forceinline__ constexpr float first_unit() {
    return Shape::kCarryIn ? 8.673617379884035e-19f : 1.1754944e-38f;  // 2^-60, 2^-126
  }

  float query_[2];
  float unit_;
  float unit_correction_;
  int key_head_;
  float factors_[2][kGroups];
  tile::GroupWeights<kGroups> weights_;
};

}  // namespace annulus::kernels

#endif  // ANNULUS_KERNELS_WGMMA_SCALES_CUH_
