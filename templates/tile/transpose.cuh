#ifndef ANNULUS_TILE_TRANSPOSE_CUH_
#define ANNULUS_TILE_TRANSPOSE_CUH_

// The transposition of tiles of 8-bit elements, which wgmma takes K-major alone: V comes with the
// columns of a key next to one another and leaves with the keys of a column next to one another, in
// the order in which convert_probabilities has those of P.
//
// ldmatrix.trans and stmatrix move pairs of bytes. Of a 16 x 16 square, keys down, the first leaves
// lane 4 g + t with two words
//
//   a = (2t, 2g) (2t, 2g + 1) (2t + 1, 2g) (2t + 1, 2g + 1)      b = the same of keys 2t + 8, 2t +
//   9
//
// whose even bytes are keys 2t, 2t + 1, 2t + 8, 2t + 9 of column 2g and whose odd ones are those of
// column 2g + 1: 4 of the 16 bytes of a row of the result, at 4t, as stmatrix wants them. Of the
// eight rows of one of its matrices four are even columns and four odd ones, so that they lie in
// different banks.

#include "ptx/ldmatrix.cuh"
#include "ptx/permute.cuh"
#include "ptx/stmatrix.cuh"
#include "tile/panel.cuh"

namespace annulus::tile {

// `from`: kKeys rows of kDim columns; `to`: kDim rows of kKeys columns. By kWarps warps, of which
// this is number `warp`.
template <int kKeys, int kDim, int kWarps>
__device__ __forceinline__ void transpose_bytes(unsigned from, unsigned to, unsigned warp,
                                                unsigned lane) {
  using From = Panels<kKeys, kDim, 1>;
  using To = Panels<kDim, kKeys, 1>;
  static_assert(kKeys % 32 == 0 && kDim % 16 == 0, "pieces of 32 keys by 16 columns");
  constexpr unsigned kEven = 0x6420;
  constexpr unsigned kOdd = 0x7531;
  const unsigned first = lane < 16 ? kEven : kOdd;  // of rows g < 4, and of the others
  const unsigned second = lane < 16 ? kOdd : kEven;
  // Lane l addresses row l % 8 of matrix l / 8: keys 16 (l / 16), even and odd by turns.
  const unsigned column = lane % 8 * 2 + ((lane % 8 / 4) ^ (lane / 8 % 2));
#pragma unroll 2
  for (unsigned piece = warp; piece < kKeys / 32 * (kDim / 16); piece += kWarps) {
    const unsigned keys = piece / (kDim / 16);
    const unsigned columns = piece % (kDim / 16);
    unsigned words[4];
    ptx::load_matrices_transposed(words, from + From::chunk(keys * 32 + lane, columns));
    ptx::store_matrices(to + To::chunk(columns * 16 + column, keys * 2 + lane / 16),
                        ptx::permute_bytes(words[0], words[1], first),
                        ptx::permute_bytes(words[0], words[1], second),
                        ptx::permute_bytes(words[2], words[3], first),
                        ptx::permute_bytes(words[2], words[3], second));
  }
}

}  // namespace annulus::tile

#endif  // ANNULUS_TILE_TRANSPOSE_CUH_
