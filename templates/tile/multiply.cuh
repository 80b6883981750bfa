#ifndef ANNULUS_TILE_MULTIPLY_CUH_
#define ANNULUS_TILE_MULTIPLY_CUH_

// The two matrix products of attention for one warp, which owns kRowTiles x 16 query rows. Scores
// and output are in registers in the layout of mma.sync (ptx/mma.cuh):
//
//   x[r][c][i]  row 16 r + lane / 4 + 8 (i / 2), column 8 c + 2 (lane % 4) + i % 2
//
// Two neighbouring 8-column pieces of probabilities, rounded to 16 bits, are already the A operand
// of the second product: no data moves between lanes.

#include "ptx/ldmatrix.cuh"
#include "tile/element.cuh"
#include "tile/swizzle.cuh"

namespace annulus::tile {

// The addresses that a lane passes to ldmatrix, as offsets in a tile.
template <int kColumns>
struct LaneOffset {
  // For Q and V: 16 rows x 16 columns as four matrices, rows 0-7 and 8-15 of the left half, then of
  // the right half.
  static __device__ __forceinline__ unsigned rows_first(unsigned lane) {
    return Swizzle<kColumns>::offset(lane % 16, lane / 16);
  }
  // For K, whose rows are the columns of the product: left and right half of rows 0-7, then of rows
  // 8-15.
  static __device__ __forceinline__ unsigned columns_first(unsigned lane) {
    return Swizzle<kColumns>::offset(lane % 8 + lane / 16 * 8, lane / 8 % 2);
  }
};

// The warp's query rows as A operands, either read again from shared memory in every step
// (kInRegisters is false) or kept in registers from the first tile on, by keep().
template <int kRowTiles, int kDim, bool kInRegisters>
class Query;

template <int kRowTiles, int kDim>
class Query<kRowTiles, kDim, false> {
 public:
  // `address` is the warp's first row in shared memory plus rows_first(lane).
  __device__ __forceinline__ explicit Query(unsigned address) : address_(address) {}
  __device__ __forceinline__ void keep() {}
  __device__ __forceinline__ void fragments(unsigned (&a)[kRowTiles][4], int step) const {
#pragma unroll
    for (int r = 0; r < kRowTiles; ++r) {
      ptx::load_matrices(a[r],
                         Swizzle<kDim>::step(address_, step) + r * 16 * Swizzle<kDim>::kPitch);
    }
  }

 private:
  unsigned address_;
};

template <int kRowTiles, int kDim>
class Query<kRowTiles, kDim, true> {
 public:
  __device__ __forceinline__ explicit Query(unsigned address) : address_(address), kept_{} {}
  // Requires: the rows have arrived.
  __device__ __forceinline__ void keep() {
    const Query<kRowTiles, kDim, false> source(address_);
#pragma unroll
    for (int step = 0; step < kDim / 16; ++step) source.fragments(kept_[step], step);
  }
  __device__ __forceinline__ void fragments(unsigned (&a)[kRowTiles][4], int step) const {
#pragma unroll
    for (int r = 0; r < kRowTiles; ++r) {
#pragma unroll
      for (int i = 0; i < 4; ++i) a[r][i] = kept_[step][r][i];
    }
  }

 private:
  unsigned address_;
  unsigned kept_[kDim / 16][kRowTiles][4];
};

// scores = Q K^T for kColumns keys. `keys` is the K tile in shared memory plus columns_first(lane).
template <typename Element, int kDim, int kRowTiles, int kColumns, bool kInRegisters>
__device__ __forceinline__ void multiply_scores(float (&scores)[kRowTiles][kColumns / 8][4],
                                                const Query<kRowTiles, kDim, kInRegisters>& query,
                                                unsigned keys) {
#pragma unroll
  for (int r = 0; r < kRowTiles; ++r) {
#pragma unroll
    for (int c = 0; c < kColumns / 8; ++c) {
#pragma unroll
      for (int i = 0; i < 4; ++i) scores[r][c][i] = 0.0f;
    }
  }
  // The loop is fully unrolled, so that ptxas loads the fragments of later steps earlier.
#pragma unroll
  for (int step = 0; step < kDim / 16; ++step) {
    unsigned a[kRowTiles][4];
    query.fragments(a, step);
    const unsigned address = Swizzle<kDim>::step(keys, step);
#pragma unroll
    for (int c = 0; c < kColumns / 16; ++c) {
      unsigned b[4];
      ptx::load_matrices(b, address + c * 16 * Swizzle<kDim>::kPitch);
#pragma unroll
      for (int r = 0; r < kRowTiles; ++r) {
        Element::mma(scores[r][2 * c], a[r], b[0], b[1]);
        Element::mma(scores[r][2 * c + 1], a[r], b[2], b[3]);
      }
    }
  }
}

// output += P V for kColumns keys. `values` is the V tile in shared memory plus rows_first(lane).
template <typename Element, int kDim, int kRowTiles, int kColumns>
__device__ __forceinline__ void multiply_values(
    float (&output)[kRowTiles][kDim / 8][4],
    const float (&probabilities)[kRowTiles][kColumns / 8][4], unsigned values) {
  // It takes 16 keys at a time: their probabilities become one A operand for each piece of 16 rows.
#pragma unroll
  for (int c = 0; c < kColumns / 16; ++c) {
    unsigned a[kRowTiles][4];
#pragma unroll
    for (int r = 0; r < kRowTiles; ++r) {
      const float(&left)[4] = probabilities[r][2 * c];
      const float(&right)[4] = probabilities[r][2 * c + 1];
      a[r][0] = Element::pack(left[0], left[1]);
      a[r][1] = Element::pack(left[2], left[3]);
      a[r][2] = Element::pack(right[0], right[1]);
      a[r][3] = Element::pack(right[2], right[3]);
    }
#pragma unroll
    for (int d = 0; d < kDim / 16; ++d) {
      unsigned b[4];
      ptx::load_matrices_transposed(
          b, Swizzle<kDim>::step(values, d) + c * 16 * Swizzle<kDim>::kPitch);
#pragma unroll
      for (int r = 0; r < kRowTiles; ++r) {
        Element::mma(output[r][2 * d], a[r], b[0], b[1]);
        Element::mma(output[r][2 * d + 1], a[r], b[2], b[3]);
      }
    }
  }
}

}  // namespace annulus::tile

#endif  // ANNULUS_TILE_MULTIPLY_CUH_
