#ifndef ANNULUS_TILE_SWIZZLE_CUH_
#define ANNULUS_TILE_SWIZZLE_CUH_

// The address of element (row, column) of a tile of 16-bit elements in shared memory. Rows follow
// each other without padding. Inside a row the 16-byte chunks are exchanged within groups of
// kPhases, and then the eight rows that one ldmatrix matrix reads, and the eight chunks that a
// quarter of a warp writes, are in different banks:
//
//   pitch a multiple of 128 bytes    chunk ^ (row % 8)          groups of 8 chunks
//   pitch 64 more than a multiple    chunk ^ (row / 2 % 4)      groups of 4 chunks; odd rows start
//   (head dims 32 and 96)                                       half-way through the banks
//
// The exchange depends only on row % 8, so a lane computes it once: a move by a multiple of eight
// rows adds a constant, and a move along a row is one exclusive or and a constant (step()).

#include "tile/element.cuh"

namespace annulus::tile {

template <int kColumns>
struct Swizzle {
  static_assert(kColumns % 32 == 0 && kColumns >= 32 && kColumns <= 256,
                "a head dim must be a multiple of 32 from 32 to 256");
  // These are enumerators, because NVRTC emits a static constant as a variable of the module.
  enum : int {
    kPitch = kColumns * kElementBytes,  // bytes from row to row
    kChunks = kColumns / kChunkElements,
    kPhases = kPitch % 128 == 0 ? 8 : 4,
  };

  static __device__ __forceinline__ unsigned phase(unsigned row) {
    return kPhases == 8 ? row % 8 : row / 2 % 4;
  }

  // Bytes from the start of the tile to chunk `chunk` of row `row`.
  static __device__ __forceinline__ unsigned offset(unsigned row, unsigned chunk) {
    return row * kPitch + ((chunk ^ phase(row)) << 4);
  }

  // The address of chunk c + 2 * pair of a row, given the address of its chunk c (0 or 1).
  // Requires: the tile starts at a multiple of 128 bytes.
  static __device__ __forceinline__ unsigned step(unsigned address, int pair) {
    constexpr int kPairs = kPhases / 2;
    return (address ^ (pair % kPairs * 32)) + pair / kPairs * (kPhases * 16);
  }
};

}  // namespace annulus::tile

#endif  // ANNULUS_TILE_SWIZZLE_CUH_
