#ifndef ANNULUS_TILE_ROW_LIMITS_CUH_
#define ANNULUS_TILE_ROW_LIMITS_CUH_

// The keys that single rows of Q of a batch may see, in addition to the pattern: keys up to an end
// of their own, and, of the newest keys, the keys of a tree of drafts that lead to the row.

#include "params/batch_params.h"
#include "tile/batch_row.cuh"
#include "tile/row_mask.cuh"

namespace annulus::tile {

// Which of a lane's columns the row may see, out of kColumns columns from `first_key` on.
template <int kColumns, bool kInterleaved>
__device__ __forceinline__ RowBits limited_columns(const kernels::BatchParams& params,
                                                   const kernels::BatchRow& tile,
                                                   const PackedRow& row, int first_key,
                                                   unsigned lane) {
  if (!row.exists) return RowBits(true);
  const kernels::RowLimits& limits = params.tables.header->limits;
  const int q_row = tile.q_row + row.query;
  const int end = limits.row_end != nullptr ? limits.row_end[q_row] : tile.keys;
  const unsigned long long tree = limits.tree_bits != nullptr ? limits.tree_bits[q_row] : ~0ull;
  // With interleaved keys, positions need divisions, and all at once would take many registers.
  constexpr int kAtOnce = kInterleaved ? 8 : kColumns / 4;
  unsigned bits = 0;
#pragma unroll kAtOnce
  for (int i = 0; i < kColumns / 4; ++i) {
    int key = first_key + i / 2 * 8 + static_cast<int>(lane % 4) * 2 + i % 2;
    if constexpr (kInterleaved) key = params.interleave.key(key);
    const int newer = tile.keys - 1 - key;  // keys that are newer than this one
    const bool in_tree =
        newer >= kernels::kTreeKeys || (tree >> (newer & (kernels::kTreeKeys - 1)) & 1) != 0;
    bits |= (key < end && in_tree ? 1u : 0u) << i;
  }
  return bits;
}

}  // namespace annulus::tile

#endif  // ANNULUS_TILE_ROW_LIMITS_CUH_
