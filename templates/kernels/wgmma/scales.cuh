#ifndef ANNULUS_KERNELS_WGMMA_SCALES_CUH_
#define ANNULUS_KERNELS_WGMMA_SCALES_CUH_

// How a consumer computes probabilities from products. The first class is for 16-bit elements,
// which have no scales; the second is for 8-bit elements with the scales of Q, K and V
// (ScaleParams). Both have the same functions, so the consumer's code is the same:
//
//   begin, enter              at the start of a work, and for a state that is carried in
//   read                      before the products of a step: loads its scales
//   finish, online_softmax    after the products of a step
//   leave                     after the last step
//
// tile/scaled_softmax.cuh explains the unit, and why probabilities are 2^8 times as large.

#include "kernels/wgmma/work.cuh"
#include "tile/general.cuh"
#include "tile/scaled_softmax.cuh"
#include "tile/score.cuh"
#include "tile/softmax.cuh"

namespace annulus::kernels {

template <typename Shape, bool kScaled = Shape::Element::kBytes == 1>
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
  template <int kPieces>
  __device__ __forceinline__ void leave(tile::RowState<1>&, float (&)[1][kPieces][4]) const {}
};

template <typename Shape>
class Scales<Shape, true> {
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
      query_[half] =
          params.scale *
          (scales.q ? checked(scales.q[query * scales.q_blocks + (row >> scales.q_shift)]) : 1);
    }
    const int kv_heads = params.heads / params.group;
    key_head_ = batch * kv_heads + head / params.group;
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
  __device__ __forceinline__ void leave(tile::RowState<1>& state,
                                        float (&output)[1][kPieces][4]) const {
    // From 2^24 on, neighbouring fp32 numbers are 2 apart. A probability relative to a rounded row
    // max may then be larger than 448, the largest e4m3 number, and the part that saturation cuts
    // off would be missing in the output but not in the sum. Such a row becomes NaN instead of
    // wrong.
    constexpr float kMaxScore = 16777216.0f;  // 2^24
    float factors[1][2];
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      state.sum[0][half] *= 1 / powers_of_one();
      const float row_max = state.row_max[0][half];
      const bool beyond = fabsf(row_max) >= kMaxScore && row_max != tile::minus_infinity();
      factors[0][half] = beyond ? tile::not_a_number() : unit_ * (1 / powers_of_one());
    }
    tile::rescale(output, factors);
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
            scales.k ? checked(scales.k[static_cast<long long>(key_head_) * scales.k_blocks +
                                        (key >> scales.k_shift)])
                     : 1;
        values[g] = scales.v
                        ? checked(scales.v[static_cast<long long>(key_head_) * scales.v_blocks +
                                           (key >> scales.v_shift)])
                        : 1;
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          float factor = query_[half] * of_keys;
          // A factor of 0 would turn a masked score into NaN (0 x -inf), so it is raised to the
          // smallest normal number. The comparison leaves NaN as it is.
          if constexpr (static_cast<Score>(Shape::kScore) == Score::kPositiveScale) {
            constexpr float kLeast = 1.1754944e-38f;  // the smallest normal number
            factor = factor <= kLeast ? kLeast : factor;
          }
          factors_[half][g] = factor;
        }
      }
    }
    weights_ = tile::online_softmax_groups(values, unit_, unit_correction_);
  }

  // Scales the products of tile `b` of a step, unless softmax does it in the exponent
  // (kPositiveScale).
  template <int kPieces>
  __device__ __forceinline__ void finish(const AttentionParams& params,
                                         float (&scores)[1][kPieces][4], int b) const {
    constexpr Score kScore = static_cast<Score>(Shape::kScore);
    if constexpr (kScore != Score::kPositiveScale) {
#pragma unroll
      for (int c = 0; c < kPieces; ++c) {
        const int g = b * kBlockGroups + c * 8 / Shape::kScaleColumns;
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          float t = scores[0][c][i] * factors_[i / 2][g];
          if constexpr (kScore == Score::kSoftcap) t = params.softcap * tile::tanh(t);
          scores[0][c][i] = t;
        }
      }
    }
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

 private:
  // The scale, or NaN if it is not from 0 to 2^125, the largest whose inverse is a normal number.
  static __device__ __forceinline__ float checked(float scale) {
    constexpr float kMax = 4.2535296e37f;  // 2^125
    return scale >= 0.0f && scale <= kMax ? scale : tile::not_a_number();
  }
  // The unit before any scale of V is seen. It must not be 0, because its inverse is taken. With a
  // carried state it is 2^-60: the state is divided by it, so values up to 2^59 stay finite.
  // Otherwise it is the smallest normal number, below all scales that matter.
  static __device__ __forceinline__ constexpr float first_unit() {
    return Shape::kCarryIn ? 8.673617379884035e-19f : 1.1754944e-38f;  // 2^-60, 2^-126
  }
  static __device__ __forceinline__ constexpr float powers_of_one() {
    return 1 << tile::kProbabilityBits;
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
