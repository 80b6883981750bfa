#ifndef ANNULUS_TILE_TRANSPOSE_CUH_
#define ANNULUS_TILE_TRANSPOSE_CUH_

// The transposition of tiles of 8-bit elements, which wgmma takes K-major only. V arrives with the
// columns of a key next to one another. The result has the keys of a column next to one another, in
// the same order as the keys of P after convert_probabilities (tile/warpgroup_multiply.cuh).
//
// ldmatrix.trans and stmatrix move pairs of bytes. From a 16 x 16 square whose rows are keys,
// ldmatrix.trans gives lane 4 g + t two words, whose bytes are (key, column)
//
//   a = (2t, 2g) (2t, 2g + 1) (2t + 1, 2g) (2t + 1, 2g + 1)
//   b = the same for keys 2t + 8, 2t + 9
//
// The even bytes of both words are keys 2t, 2t + 1, 2t + 8, 2t + 9 of column 2g, and the odd bytes
// are the same keys of column 2g + 1. Each group of four is 4 of the 16 bytes of a row of the
// result, at byte 4t, as stmatrix needs them. Of the eight rows of one stmatrix matrix, four are
// even columns and four are odd ones, so they are in different banks.

#include "ptx/ldmatrix.cuh"
#include "ptx/permute.cuh"
#include "ptx/stmatrix.cuh"
#include "tile/panel.cuh"

namespace annulus::tile {

// Transposes `from`, kKeys rows of kDim columns, to `to`, kDim rows of kKeys columns, in pieces of
// 32 keys by 16 columns. kWarps warps divide the columns; this warp is number `warp`.
template <int kKeys, int kDim, int kWarps>
__device__ __forceinline__ void transpose_bytes(unsigned from, unsigned to, unsigned warp,
                                                unsigned lane) {
  using From = Panels<kKeys, kDim, 1>;
  using To = Panels<kDim, kKeys, 1>;
  static_assert(kKeys % 32 == 0 && kDim % 16 == 0, "pieces of 32 keys by 16 columns");
  constexpr unsigned kEven = 0x6420;
  constexpr unsigned kOdd = 0x7531;
  // Lanes with g < 4 put even columns into the first matrix and odd ones into the second; the other
  // lanes do the opposite.
  const unsigned first = lane < 16 ? kEven : kOdd;
  const unsigned second = lane < 16 ? kOdd : kEven;
  // Lane l addresses row l % 8 of matrix l / 8. Matrices 0 and 1 hold the first 16 keys, 2 and 3
  // the others; `column` is the row of the result that the lane addresses.
  const unsigned column = lane % 8 * 2 + ((lane % 8 / 4) ^ (lane / 8 % 2));
  // A warp takes whole columns of pieces, since the addresses of pieces above one another differ by
  // numbers that are known to the compiler.
#pragma unroll 1
  for (unsigned columns = warp; columns < kDim / 16; columns += kWarps) {
#pragma unroll
    for (unsigned keys = 0; keys < kKeys / 32; ++keys) {
      unsigned words[4];
      ptx::load_matrices_transposed(words, from + From::chunk(keys * 32 + lane, columns));
      ptx::store_matrices(to + To::chunk(columns * 16 + column, keys * 2 + lane / 16),
                          ptx::permute_bytes(words[0], words[1], first),
                          ptx::permute_bytes(words[0], words[1], second),
                          ptx::permute_bytes(words[2], words[3], first),
                          ptx::permute_bytes(words[2], words[3], second));
    }
  }
}

}  // namespace annulus::tile

#endif  // ANNULUS_TILE_TRANSPOSE_CUH_
