#ifndef ANNULUS_TILE_WARPGROUP_MULTIPLY_CUH_
#define ANNULUS_TILE_WARPGROUP_MULTIPLY_CUH_

// The two products of attention by warpgroups. These functions only start products: the caller
// fences before them, and commits and waits after them (ptx/wgmma.cuh).

#include "ptx/ldmatrix.cuh"
#include "ptx/warpgroup.cuh"
#include "ptx/wgmma.cuh"
#include "tile/panel.cuh"

namespace annulus::tile {

// The product instructions of an Element. shared(): B is K-major in shared memory. values(): B is
// V. With 16-bit types it is as in memory, with the columns of a key next to one another; with
// 8-bit types it is transposed. Either is called for one step or for four, which the compiler
// handles as one instruction (ptx/wgmma.cuh).
template <typename Element, int kColumns>
struct WarpgroupProduct;

template <int kColumns>
struct WarpgroupProduct<Bfloat16, kColumns> {
  template <typename... Arguments>
  static __device__ __forceinline__ void shared(Arguments&... arguments) {
    ptx::Wgmma<kColumns>::bf16(arguments...);
  }
  template <typename... Arguments>
  static __device__ __forceinline__ void values(Arguments&... arguments) {
    ptx::Wgmma<kColumns>::template bf16<1>(arguments...);
  }
};

template <int kColumns>
struct WarpgroupProduct<Float16, kColumns> {
  template <typename... Arguments>
  static __device__ __forceinline__ void shared(Arguments&... arguments) {
    ptx::Wgmma<kColumns>::f16(arguments...);
  }
  template <typename... Arguments>
  static __device__ __forceinline__ void values(Arguments&... arguments) {
    ptx::Wgmma<kColumns>::template f16<1>(arguments...);
  }
};

template <int kColumns>
struct WarpgroupProduct<Float8E4M3, kColumns> {
  template <typename... Arguments>
  static __device__ __forceinline__ void shared(Arguments&... arguments) {
    ptx::Wgmma<kColumns>::e4m3(arguments...);
  }
  template <typename... Arguments>
  static __device__ __forceinline__ void values(Arguments&... arguments) {
    shared(arguments...);
  }
};

// 64 rows of Q as the first operand of the scores, read from shared memory by each product. The
// panels have kRows rows.
template <typename Element, int kDim, bool kInRegisters, int kRows = 64>
class WarpgroupQuery {
 public:
  __device__ __forceinline__ void read(unsigned queries, unsigned, unsigned) { queries_ = queries; }
  __device__ __forceinline__ unsigned first() const {
    return ptx::uniform(ptx::descriptor_address(queries_));
  }
  __device__ __forceinline__ unsigned long long step(unsigned first, int step) const {
    return Panels<kRows, kDim, Element::kBytes>::columns(first, step);
  }
  // Steps `step` to step + 3 of the scores.
  template <typename Product, int kPieces>
  __device__ __forceinline__ void multiply_four(float (&scores)[kPieces][4], unsigned first,
                                                int step, const unsigned long long (&b)[4],
                                                int accumulate) const {
    const unsigned long long a[4] = {this->step(first, step), this->step(first, step + 1),
                                     this->step(first, step + 2), this->step(first, step + 3)};
    Product::shared(scores, a, b, accumulate);
  }

 private:
  unsigned queries_;
};

// Q in registers: products then read only K from shared memory, and the rows of Q may be
// overwritten when read() has ended in all lanes.
template <typename Element, int kDim, int kRows>
class WarpgroupQuery<Element, kDim, true, kRows> {
 public:
  // Reads the rows of warp `warp` of the warpgroup, for all lanes of the warp.
  __device__ __forceinline__ void read(unsigned queries, unsigned warp, unsigned lane) {
#pragma unroll
    for (int step = 0; step < kSteps; ++step) {
      // Four matrices of 8 rows and 16 bytes: the upper and the lower rows, and then the same rows
      // of the next 16 bytes.
      ptx::load_matrices(pieces_[step], queries + Panels<kRows, kDim, Element::kBytes>::chunk(
                                                      warp * 16 + lane % 16,
                                                      static_cast<unsigned>(2 * step) + lane / 16));
    }
  }
  __device__ __forceinline__ unsigned first() const { return 0; }
  __device__ __forceinline__ const unsigned (&step(unsigned, int step) const)[4] {
    return pieces_[step];
  }
  template <typename Product, int kPieces>
  __device__ __forceinline__ void multiply_four(float (&scores)[kPieces][4], unsigned, int step,
                                                const unsigned long long (&b)[4],
                                                int accumulate) const {
    Product::shared(scores, pieces_[step], pieces_[step + 1], pieces_[step + 2], pieces_[step + 3],
                    b, accumulate);
  }

 private:
  enum : int { kSteps = kDim * Element::kBytes / 32 };
  unsigned pieces_[kSteps][4];
};

// scores = Q K^T: 64 rows of Q, all rows of a tile of K.
template <typename Element, int kDim, int kColumns, typename Query>
__device__ __forceinline__ void start_scores(float (&scores)[kColumns / 8][4], const Query& query,
                                             unsigned keys) {
  const unsigned first_a = query.first();
  const unsigned first_b = ptx::uniform(ptx::descriptor_address(keys));
  constexpr int kSteps = kDim * Element::kBytes / 32;
  using Keys = Panels<kColumns, kDim, Element::kBytes>;
#pragma unroll
  for (int step = 0; step + 4 <= kSteps; step += 4) {
    const unsigned long long b[4] = {Keys::columns(first_b, step), Keys::columns(first_b, step + 1),
                                     Keys::columns(first_b, step + 2),
                                     Keys::columns(first_b, step + 3)};
    const int accumulate = step != 0;
    query.template multiply_four<WarpgroupProduct<Element, kColumns>>(scores, first_a, step, b,
                                                                      accumulate);
  }
#pragma unroll
  for (int step = kSteps / 4 * 4; step < kSteps; ++step) {
    const auto& a = query.step(first_a, step);
    const unsigned long long b = Keys::columns(first_b, step);
    const int accumulate = step != 0;
    WarpgroupProduct<Element, kColumns>::shared(scores, a, b, accumulate);
  }
}

// The number of A operands for the probabilities of kColumns keys.
template <typename Element, int kColumns>
struct Probabilities {
  enum : int { kCount = kColumns * Element::kBytes / 32 };
};

// output += P V, with P in registers as convert_probabilities returns it. `values` is a tile of V,
// for 8-bit elements transposed by transpose_bytes (tile/transpose.cuh).
template <typename Element, int kDim, int kColumns>
__device__ __forceinline__ void start_values(
    float (&output)[kDim / 8][4],
    const unsigned (&probabilities)[Probabilities<Element, kColumns>::kCount][4], unsigned values) {
  const unsigned first = ptx::uniform(ptx::descriptor_address(values));
  using Product = WarpgroupProduct<Element, kDim>;
  constexpr int kSteps = Probabilities<Element, kColumns>::kCount;
  const auto operand = [&](int step) {
    if constexpr (Element::kBytes == 1) {
      return Panels<kDim, kColumns, 1>::columns(first, step);
    } else {
      using Panels = ValuePanels<kColumns, kDim>;
      static_assert(kDim % Panels::kPanelColumns == 0, "V has whole panels");
      return Panels::rows(first, step);
    }
  };
  const int accumulate = 1;
#pragma unroll
  for (int step = 0; step + 4 <= kSteps; step += 4) {
    const unsigned long long b[4] = {operand(step), operand(step + 1), operand(step + 2),
                                     operand(step + 3)};
    Product::values(output, probabilities[step], probabilities[step + 1], probabilities[step + 2],
                    probabilities[step + 3], b, accumulate);
  }
#pragma unroll
  for (int step = kSteps / 4 * 4; step < kSteps; ++step) {
    const unsigned long long b = operand(step);
    Product::values(output, probabilities[step], b, accumulate);
  }
}

// part = P V for the `index`-th group of kPieces * 8 columns of V, for 8-bit elements.
template <typename Element, int kDim, int kColumns, int kPieces>
__device__ __forceinline__ void start_values_part(
    float (&part)[kPieces][4],
    const unsigned (&probabilities)[Probabilities<Element, kColumns>::kCount][4], unsigned values,
    int index) {
  static_assert(Element::kBytes == 1 && kDim % (kPieces * 8) == 0, "whole parts of transposed V");
  const unsigned first =
      ptx::uniform(ptx::descriptor_address(values + index * kPieces * 8 * kPanelPitch));
#pragma unroll
  for (int step = 0; step < Probabilities<Element, kColumns>::kCount; ++step) {
    const unsigned long long b = Panels<kDim, kColumns, 1>::columns(first, step);
    const int accumulate = step != 0;
    WarpgroupProduct<Element, kPieces * 8>::shared(part, probabilities[step], b, accumulate);
  }
}

// Converts probabilities, which are in the layout of D, to A operands, without moving data between
// lanes. Two pieces of D make one A of 16-bit elements, and four pieces one of 8-bit elements. With
// 8 bits, column 16 h + 4 t + i of A is the i-th of keys 16 h + 2 t, + 1, + 8 and + 9, which are
// the keys of lane t; the transposed V has its keys in the same order.
template <typename Element, int kPieces>
__device__ __forceinline__ void convert_probabilities(
    const float (&scores)[kPieces][4],
    unsigned (&probabilities)[Probabilities<Element, kPieces * 8>::kCount][4]) {
#pragma unroll
  for (int c = 0; c < kPieces; c += Element::kBytes == 1 ? 2 : 1) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const float* low = scores[c] + 2 * half;
      if constexpr (Element::kBytes == 1) {
        const float* high = scores[c + 1] + 2 * half;
        probabilities[c / 4][c / 2 % 2 * 2 + half] =
            Element::pack(low[0], low[1], high[0], high[1]);
      } else {
        probabilities[c / 2][c % 2 * 2 + half] = Element::pack(low[0], low[1]);
      }
    }
  }
}

}  // namespace annulus::tile

#endif  // ANNULUS_TILE_WARPGROUP_MULTIPLY_CUH_
