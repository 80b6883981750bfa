#ifndef ANNULUS_TILE_WARPGROUP_MULTIPLY_CUH_
#define ANNULUS_TILE_WARPGROUP_MULTIPLY_CUH_

// The two products of attention by warpgroups. Both only start them: the caller fences before and
// commits and waits behind (ptx/wgmma.cuh).

#include "ptx/ldmatrix.cuh"
#include "ptx/warpgroup.cuh"
#include "ptx/wgmma.cuh"
#include "tile/panel.cuh"

namespace annulus::tile {

// Products chosen by Element: of two operands in shared memory, and of A in registers with V as it
// lies in memory (16-bit types) or with its keys next to one another (8-bit types).
template <typename Element, int kColumns>
struct WarpgroupProduct;

template <int kColumns>
struct WarpgroupProduct<Bfloat16, kColumns> {
  template <typename... Arguments>
  static __device__ __forceinline__ void shared(Arguments&... arguments) {
    ptx::Wgmma<kColumns>::bf16(arguments...);
  }
  template <typename... Arguments>
  static __device__ __forceinline__ void transposed(Arguments&... arguments) {
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
  static __device__ __forceinline__ void transposed(Arguments&... arguments) {
    ptx::Wgmma<kColumns>::template f16<1>(arguments...);
  }
};

template <int kColumns>
struct WarpgroupProduct<Float8E4M3, kColumns> {
  template <typename... Arguments>
  static __device__ __forceinline__ void shared(Arguments&... arguments) {
    ptx::Wgmma<kColumns>::e4m3(arguments...);
  }
};

// 64 rows of Q as the first operand of the scores, from where they lie in shared memory.
template <typename Element, int kDim, bool kInRegisters>
class WarpgroupQuery {
 public:
  __device__ __forceinline__ void read(unsigned queries, unsigned, unsigned) { queries_ = queries; }
  __device__ __forceinline__ unsigned first() const {
    return ptx::uniform(ptx::descriptor_address(queries_));
  }
  __device__ __forceinline__ unsigned long long step(unsigned first, int step) const {
    return Panels<64, kDim, Element::kBytes>::columns(first, step);
  }

 private:
  unsigned queries_;
};

// In registers: products read shared memory for K alone, and the rows may be overwritten at once.
template <typename Element, int kDim>
class WarpgroupQuery<Element, kDim, true> {
 public:
  // By all lanes of warp `warp` of the warpgroup.
  __device__ __forceinline__ void read(unsigned queries, unsigned warp, unsigned lane) {
#pragma unroll
    for (int step = 0; step < kSteps; ++step) {
      // Matrices of 8 rows: the upper ones, those below, and both of the next 16 bytes.
      ptx::load_matrices(pieces_[step], queries + Panels<64, kDim, Element::kBytes>::chunk(
                                                      warp * 16 + lane % 16,
                                                      static_cast<unsigned>(2 * step) + lane / 16));
    }
  }
  __device__ __forceinline__ unsigned first() const { return 0; }
  __device__ __forceinline__ const unsigned (&step(unsigned, int step) const)[4] {
    return pieces_[step];
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
#pragma unroll
  for (int step = 0; step < kDim * Element::kBytes / 32; ++step) {
    const auto& a = query.step(first_a, step);
    const unsigned long long b = Panels<kColumns, kDim, Element::kBytes>::columns(first_b, step);
    const int accumulate = step != 0;
    WarpgroupProduct<Element, kColumns>::shared(scores, a, b, accumulate);
  }
}

// Operands that the probabilities of kColumns keys make.
template <typename Element, int kColumns>
struct Probabilities {
  enum : int { kCount = kColumns * Element::kBytes / 32 };
};

// output += P V, with P in registers as convert_probabilities leaves it. `values` is a tile of V
// or, of 8-bit elements, what transpose_bytes (tile/transpose.cuh) made of it.
template <typename Element, int kDim, int kColumns>
__device__ __forceinline__ void start_values(
    float (&output)[kDim / 8][4],
    const unsigned (&probabilities)[Probabilities<Element, kColumns>::kCount][4], unsigned values) {
  const unsigned first = ptx::uniform(ptx::descriptor_address(values));
#pragma unroll
  for (int step = 0; step < Probabilities<Element, kColumns>::kCount; ++step) {
    const int accumulate = 1;
    if constexpr (Element::kBytes == 1) {
      const unsigned long long b = Panels<kDim, kColumns, 1>::columns(first, step);
      WarpgroupProduct<Element, kDim>::shared(output, probabilities[step], b, accumulate);
    } else {
      const unsigned long long b = Panels<kColumns, kDim>::rows(first, step);
      WarpgroupProduct<Element, kDim>::transposed(output, probabilities[step], b, accumulate);
    }
  }
}

// part = P V for as many columns of V as it holds, the `index`-th of them, for 8-bit elements.
template <typename Element, int kDim, int kColumns, int kPieces>
__device__ __forceinline__ void start_values_part(
    float (&part)[kPieces][4],
    const unsigned (&probabilities)[Probabilities<Element, kColumns>::kCount][4], unsigned values,
    int index) {
  static_assert(Element::kBytes == 1 && kDim % (kPieces * 8) == 0, "whole parts of V turned round");
  const unsigned first =
      ptx::uniform(ptx::descriptor_address(values + index * kPieces * 8 * kPanelPitch));
#pragma unroll
  for (int step = 0; step < Probabilities<Element, kColumns>::kCount; ++step) {
    const unsigned long long b = Panels<kDim, kColumns, 1>::columns(first, step);
    const int accumulate = step != 0;
    WarpgroupProduct<Element, kPieces * 8>::shared(part, probabilities[step], b, accumulate);
  }
}

// Two pieces of D are, converted, one A; of 8-bit elements four. There column 16 h + 4 t + i of A
// is the i-th of keys 16 h + 2 t, + 1, + 8 and + 9, which are those of lane t: V has its keys in
// the same order.
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
