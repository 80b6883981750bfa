#ifndef ANNULUS_TILE_WARPGROUP_MULTIPLY_CUH_
#define ANNULUS_TILE_WARPGROUP_MULTIPLY_CUH_

// The two products of attention by warpgroups. Both only start them: the caller fences before and
// commits and waits behind (ptx/wgmma.cuh).

#include "ptx/warpgroup.cuh"
#include "ptx/wgmma.cuh"
#include "tile/panel.cuh"

namespace annulus::tile {

// The 16-bit types' products, chosen by Element.
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

// scores = Q K^T: 64 rows of Q, all rows of a tile of K.
template <typename Element, int kDim, int kColumns>
__device__ __forceinline__ void start_scores(float (&scores)[kColumns / 8][4], unsigned queries,
                                             unsigned keys) {
  const unsigned first_a = ptx::uniform(ptx::descriptor_address(queries));
  const unsigned first_b = ptx::uniform(ptx::descriptor_address(keys));
#pragma unroll
  for (int step = 0; step < kDim / 16; ++step) {
    const unsigned long long a = Panels<64, kDim>::columns(first_a, step);
    const unsigned long long b = Panels<kColumns, kDim>::columns(first_b, step);
    const int accumulate = step != 0;
    WarpgroupProduct<Element, kColumns>::shared(scores, a, b, accumulate);
  }
}

// output += P V, with P in registers as convert_powers leaves it.
template <typename Element, int kDim, int kColumns>
__device__ __forceinline__ void start_values(float (&output)[kDim / 8][4],
                                             const unsigned (&powers)[kColumns / 16][4],
                                             unsigned values) {
  const unsigned first = ptx::uniform(ptx::descriptor_address(values));
#pragma unroll
  for (int step = 0; step < kColumns / 16; ++step) {
    const unsigned long long b = Panels<kColumns, kDim>::rows(first, step);
    const int accumulate = 1;
    WarpgroupProduct<Element, kDim>::transposed(output, powers[step], b, accumulate);
  }
}

// Two pieces of D are, converted, one A.
template <typename Element, int kPieces>
__device__ __forceinline__ void convert_powers(const float (&scores)[kPieces][4],
                                               unsigned (&powers)[kPieces / 2][4]) {
#pragma unroll
  for (int c = 0; c < kPieces; ++c) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      powers[c / 2][c % 2 * 2 + half] = Element::pack(scores[c][2 * half], scores[c][2 * half + 1]);
    }
  }
}

}  // namespace annulus::tile

#endif  // ANNULUS_TILE_WARPGROUP_MULTIPLY_CUH_
