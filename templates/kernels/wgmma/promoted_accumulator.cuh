#ifndef ANNULUS_KERNELS_WGMMA_PROMOTED_ACCUMULATOR_CUH_
#define ANNULUS_KERNELS_WGMMA_PROMOTED_ACCUMULATOR_CUH_

// Promoted accumulation (as in DeepGEMM) keeps the sums of tensor cores over 8-bit products short.
// Tensor cores truncate each term to about 14 bits, and the error grows with the number of terms.
// Every kPromoteSteps steps a consumer adds its output in fp32 to a sum in shared memory and starts
// from 0 again. Each thread has addresses of its own, so no barrier is needed.

#include "kernels/wgmma/work.cuh"
#include "ptx/memory.cuh"

namespace annulus::kernels {

template <typename Shape, bool kPromotes = (Shape::kPromoteSteps > 0)>
class PromotedAccumulator {
 public:
  __device__ __forceinline__ PromotedAccumulator(unsigned, unsigned) {}
  __device__ __forceinline__ void begin() {}
  __device__ __forceinline__ void rescale(const float (&)[1][2]) {}
  template <int kPieces>
  __device__ __forceinline__ void step(int, float (&)[1][kPieces][4]) {}
  template <int kPieces>
  __device__ __forceinline__ void end(float (&)[1][kPieces][4]) {}
};

template <typename Shape>
class PromotedAccumulator<Shape, true> {
  using Layout = WgmmaLayout<Shape>;

 public:
  __device__ __forceinline__ PromotedAccumulator(unsigned shared, unsigned consumer)
      : place_(shared + Layout::kPromoted + consumer * Layout::kPromotedBytes +
               threadIdx.x % 128 * 16) {}

  // Begins a work, with nothing promoted yet.
  __device__ __forceinline__ void begin() {
    any_ = 0;
    factor_[0] = factor_[1] = 1.0f;
  }
  // Records that the output was rescaled by `correction`. The sum in shared memory is rescaled when
  // it is read next, by the product of all corrections since it was written.
  __device__ __forceinline__ void rescale(const float (&correction)[1][2]) {
    factor_[0] *= correction[0][0];
    factor_[1] *= correction[0][1];
  }
  // Promotes the output if enough steps have passed. Called after step `step`, with its products
  // complete.
  template <int kPieces>
  __device__ __forceinline__ void step(int step, float (&output)[1][kPieces][4]) {
    if (step % Shape::kPromoteSteps != 0) return;
#pragma unroll
    for (int d = 0; d < kPieces; ++d) {
      if (any_) add(output[0][d], d);
      ptx::store_shared_16(place_ + d * kPitch,
                           {__float_as_uint(output[0][d][0]), __float_as_uint(output[0][d][1]),
                            __float_as_uint(output[0][d][2]), __float_as_uint(output[0][d][3])});
#pragma unroll
      for (int i = 0; i < 4; ++i) output[0][d][i] = 0.0f;
    }
    any_ = 1;
    factor_[0] = factor_[1] = 1.0f;
  }
  // Adds the promoted sum to the output, at the end of a work.
  template <int kPieces>
  __device__ __forceinline__ void end(float (&output)[1][kPieces][4]) {
    if (!any_) return;
#pragma unroll
    for (int d = 0; d < kPieces; ++d) add(output[0][d], d);
  }

 private:
  enum : int { kPitch = 128 * 16 };

  __device__ __forceinline__ void add(float (&piece)[4], int d) const {
    const ptx::Words4 sum = ptx::load_shared_16(place_ + d * kPitch);
    piece[0] += __uint_as_float(sum.x) * factor_[0];
    piece[1] += __uint_as_float(sum.y) * factor_[0];
    piece[2] += __uint_as_float(sum.z) * factor_[1];
    piece[3] += __uint_as_float(sum.w) * factor_[1];
  }

  const unsigned place_;
  int any_ = 0;
  float factor_[2];
};

}  // namespace annulus::kernels

#endif  // ANNULUS_KERNELS_WGMMA_PROMOTED_ACCUMULATOR_CUH_
