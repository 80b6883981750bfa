#ifndef ANNULUS_KERNELS_WGMMA_PARTS_CUH_
#define ANNULUS_KERNELS_WGMMA_PARTS_CUH_

// The product of probabilities and V, kPartColumns columns at a time, each part added to the output
// in fp32. This is the second way to keep the sums of tensor cores over 8-bit products short
// (kernels/wgmma/promoted_accumulator.cuh explains the reason), for shapes whose promoted output
// does not fit shared memory. Rescaling is part of the addition. Two parts alternate: one is added
// while the other is multiplied. The disadvantage is that a consumer's softmax no longer overlaps
// with its own product, only with the product of the other consumer.

#include "ptx/wgmma.cuh"
#include "tile/panel.cuh"
#include "tile/warpgroup_multiply.cuh"

namespace annulus::kernels {

enum : int { kPartColumns = 32 };

// output = output * correction + P V, complete on return, with P and V as in tile::start_values.
// `start_next` is called when the last part has been started. It may start products of its own and
// commit them as one group, which is then still under way on return; kNext is 1 if it does, else 0,
// and is the number of groups that the last wait leaves pending.
template <typename Element, int kDim, int kColumns, int kNext, typename StartNext>
__device__ __forceinline__ void add_values_in_parts(
    float (&output)[kDim / 8][4], const float (&correction)[2],
    const unsigned (&probabilities)[tile::Probabilities<Element, kColumns>::kCount][4],
    unsigned values, const StartNext& start_next) {
  constexpr int kParts = kDim / kPartColumns;
  constexpr int kPieces = kPartColumns / 8;
  float parts[2][kPieces][4];
  const auto start = [&](float(&part)[kPieces][4], int index) {
    ptx::hold(part);
    ptx::fence_products();
    tile::start_values_part<Element, kDim, kColumns>(part, probabilities, values, index);
    ptx::commit_products();
  };
  const auto add = [&](float(&part)[kPieces][4], int index) {
    ptx::hold(part);
#pragma unroll
    for (int c = 0; c < kPieces; ++c) {
      float(&piece)[4] = output[index * kPieces + c];
#pragma unroll
      for (int i = 0; i < 4; ++i) piece[i] = fmaf(piece[i], correction[i / 2], part[c][i]);
    }
  };
  start(parts[0], 0);
#pragma unroll
  for (int index = 1; index < kParts; ++index) {
    start(parts[index % 2], index);
    ptx::wait_products<1>();
    add(parts[(index - 1) % 2], index - 1);
  }
  start_next();
  ptx::wait_products<kNext>();
  add(parts[(kParts - 1) % 2], kParts - 1);
}

}  // namespace annulus::kernels

#endif  // ANNULUS_KERNELS_WGMMA_PARTS_CUH_
