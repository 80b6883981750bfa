#ifndef ANNULUS_TILE_KEY_POSITIONS_CUH_
#define ANNULUS_TILE_KEY_POSITIONS_CUH_

// The positions of a lane's columns, which are numbered from its first one. Masks, terms of
// position and score expressions get them as arguments, and masks return columns.

#include "params/batch_params.h"
#include "ptx/opaque.cuh"

namespace annulus::tile {

// Columns whose keys follow one another in the sequence.
struct FollowingKeys {
  int first;  // position of the first column

  __device__ __forceinline__ int at(int column) const { return first + column; }
  // The last column at or before a position; negative if all columns are after it.
  __device__ __forceinline__ int last_up_to(int position) const { return position - first; }
  // Nothing that depends on positions is computed before this call.
  __device__ __forceinline__ void make_opaque() { ptx::make_opaque(first); }
};

// Columns of neighbouring keys of this rank, if keys are interleaved between ranks.
struct InterleavedKeys {
  const kernels::Interleave& interleave;
  int k_position;  // position of the request's key 0
  int first;       // number of the first column's key among the keys of this rank

  __device__ __forceinline__ int at(int column) const {
    return k_position + interleave.key(first + column);
  }
  __device__ __forceinline__ int last_up_to(int position) const {
    // No request has more keys.
    constexpr long long kMost = 1 << 30;
    const long long keys = position - static_cast<long long>(k_position) + 1;
    return interleave.held(static_cast<int>(keys < 0       ? 0
                                            : keys < kMost ? keys
                                                           : kMost)) -
           1 - first;
  }
  __device__ __forceinline__ void make_opaque() { ptx::make_opaque(first); }
};

// Stores the positions of the request's keys that are on this rank, from number `first` on.
template <bool kInterleaved>
__device__ __forceinline__ auto key_positions(const kernels::BatchParams& params,
                                              const kernels::BatchRow& tile, int first) {
  if constexpr (kInterleaved) {
    return InterleavedKeys{params.interleave, tile.k_position, first};
  } else {
    return FollowingKeys{tile.k_position + first};
  }
}

}  // namespace annulus::tile

#endif  // ANNULUS_TILE_KEY_POSITIONS_CUH_
