#ifndef ANNULUS_KERNELS_WGMMA_PROMOTED_ACCUMULATOR_CUH_
#define ANNULUS_KERNELS_WGMMA_PROMOTED_ACCUMULATOR_CUH_

// Promoted accumulation (as in DeepGEMM) keeps the sums of tensor cores over 8-bit products short.
// After every product, the tensor cores of an H200 keep 14 bits of a sum (docs/kernels.md), so the
// error grows with the number of keys. Every kPromoteSteps steps a consumer adds its output in fp32
// to a sum in shared memory and starts from 0 again. Each thread has addresses of its own.
//
// The sum has the memory in which O is staged for its copy. Before the first promotion of a work, a
// thread therefore waits until the copy of the last O has read that memory; store_output() writes O
// there after a barrier at which all threads of the consumer have read their sums.

#include "kernels/wgmma/scales.cuh"
#include "kernels/wgmma/work.cuh"
#include "ptx/math.cuh"
#include "ptx/memory.cuh"
#include "ptx/tensor_copy.cuh"
#include "ptx/warpgroup.cuh"
#include "tile/softmax.cuh"

namespace annulus::kernels {

template <typename Shape, bool kPromotes = (Shape::kPromoteSteps > 0)>
class PromotedAccumulator {
 public:
  __device__ __forceinline__ PromotedAccumulator(unsigned, unsigned, int) {}
  template <int kPieces>
  __device__ __forceinline__ void step(int, const tile::RowState<1>&, float,
                                       float (&)[1][kPieces][4]) {}
  template <int kPieces>
  __device__ __forceinline__ void end(int, const tile::RowState<1>&, float,
                                      float (&)[1][kPieces][4]) {}
};

// Nothing is kept in registers between promotions: the row max and the unit that a sum is relative
// to (kernels/wgmma/scales.cuh) are stored with it, and follow from the step otherwise.
template <typename Shape>
class PromotedAccumulator<Shape, true> {
  using Layout = WgmmaLayout<Shape>;
  enum : int {
    kSteps = Shape::kPromoteSteps,
    kHasUnit = scale_kind<Shape>() == ScaleKind::kOfGroups,
  };

 public:
  // `barrier` is the named barrier of the consumer's four warps.
  __device__ __forceinline__ PromotedAccumulator(unsigned shared, unsigned consumer, int barrier)
      : shared_(shared), consumer_(consumer), barrier_(barrier) {}

  // Promotes the output if enough steps have passed. Called after step `step`, with its products
  // complete, and with the output relative to the state's row max and to `unit`.
  template <int kPieces>
  __device__ __forceinline__ void step(int step, const tile::RowState<1>& state, float unit,
                                       float (&output)[1][kPieces][4]) {
    if (step % kSteps != 0) return;
    if (step == kSteps) {
      if (threadIdx.x / 32 % 4 == 0 && ptx::elect()) ptx::wait_stores_read();
      ptx::sync_threads(barrier_, 128);
    } else {
      add(state, unit, output);
    }
    const unsigned place = sums();
#pragma unroll
    for (int d = 0; d < kPieces; ++d) {
      ptx::store_shared_16(place + d * kPitch,
                           {__float_as_uint(output[0][d][0]), __float_as_uint(output[0][d][1]),
                            __float_as_uint(output[0][d][2]), __float_as_uint(output[0][d][3])});
#pragma unroll
      for (int i = 0; i < 4; ++i) output[0][d][i] = 0.0f;
    }
    store_relative(state, unit);
  }
  // Adds the promoted sum to the output, at the end of a work of `steps` steps.
  template <int kPieces>
  __device__ __forceinline__ void end(int steps, const tile::RowState<1>& state, float unit,
                                      float (&output)[1][kPieces][4]) {
    if (steps > kSteps) add(state, unit, output);
  }

 private:
  enum : unsigned {
    kPitch = 128 * 16,
    kUnits = 64,  // the unit of each warp, after the row max of each row
  };

  static __device__ __forceinline__ float load(unsigned address) {
    return __uint_as_float(ptx::load_shared(address));
  }
  static __device__ __forceinline__ unsigned warp() { return threadIdx.x / 32 % 4; }
  static __device__ __forceinline__ unsigned row(int half) {
    return warp() * 16 + threadIdx.x % 32 / 4 + 8 * half;
  }
  // Word `index` of what the sums are relative to.
  __device__ __forceinline__ unsigned relative_to(unsigned index) const {
    return shared_ + Layout::kPromoted + consumer_ * Layout::kPromotedBytes +
           64 * Shape::kDimV * 4 + index * 4;
  }
  // One lane of the four that share a row writes its row max, and one of the warp the unit.
  __device__ __forceinline__ void store_relative(const tile::RowState<1>& state, float unit) const {
    __syncwarp();
    if (threadIdx.x % 4 == 0) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        ptx::store_shared(relative_to(row(half)), __float_as_uint(state.row_max[0][half]));
      }
    }
    if (kHasUnit && threadIdx.x % 32 == 0) {
      ptx::store_shared(relative_to(kUnits + warp()), __float_as_uint(unit));
    }
    __syncwarp();
  }
  __device__ __forceinline__ unsigned sums() const {
    return shared_ + Layout::kPromoted + consumer_ * Layout::kPromotedBytes +
           threadIdx.x % 128 * 16;
  }
  // A row max of -inf means that the row has seen no key, so its sum is 0.
  template <int kPieces>
  __device__ __forceinline__ void add(const tile::RowState<1>& state, float unit,
                                      float (&output)[1][kPieces][4]) const {
    const unsigned place = sums();
    float factors[2];
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const float row_max = state.row_max[0][half];
      const float base = row_max == tile::minus_infinity() ? 0.0f : row_max;
      factors[half] = ptx::exp2(load(relative_to(row(half))) - base);
      if constexpr (kHasUnit) {
        factors[half] *= load(relative_to(kUnits + warp())) * ptx::reciprocal(unit);
      }
    }
#pragma unroll
    for (int d = 0; d < kPieces; ++d) {
      const ptx::Words4 sum = ptx::load_shared_16(place + d * kPitch);
      output[0][d][0] += __uint_as_float(sum.x) * factors[0];
      output[0][d][1] += __uint_as_float(sum.y) * factors[0];
      output[0][d][2] += __uint_as_float(sum.z) * factors[1];
      output[0][d][3] += __uint_as_float(sum.w) * factors[1];
    }
  }

  const unsigned shared_;
  const unsigned consumer_;
  const int barrier_;
};

}  // namespace annulus::kernels

#endif  // ANNULUS_KERNELS_WGMMA_PROMOTED_ACCUMULATOR_CUH_
