#ifndef ANNULUS_TILE_KEY_ROWS_CUH_
#define ANNULUS_TILE_KEY_ROWS_CUH_

#include "params/batch_params.h"
#include "ptx/memory.cuh"

namespace annulus::tile {

// Whether K and V have rows for all keys of the tile's request that are on this rank. Without
// pages, the first row is a number in device memory, which may be wrong. A request without valid
// rows sees no keys, and the status names it.
template <typename Shape>
__device__ __forceinline__ bool has_rows(const kernels::BatchParams& params,
                                         const kernels::KeyPlaces& places,
                                         const kernels::BatchRow& row) {
  if constexpr (static_cast<kernels::Pages>(Shape::kPages) != kernels::Pages::kNone) return true;
  int keys = row.keys;
  if constexpr (Shape::kInterleaved) keys = params.interleave.held(keys);
  const auto has = [&](const int* begin, int rows) {
    if (begin == nullptr) return true;
    const int first = begin[row.request];
    return first >= 0 && first <= rows - keys;
  };
  if (keys == 0 ||
      (has(places.k_begin, params.k_page_count) && has(places.v_begin, params.v_page_count))) {
    return true;
  }
  if (threadIdx.x % 32 == 0) {
    ptx::reduce_min(&params.tables.header->status.first,
                    kernels::status_of(row.request, kernels::kTooFewPages));
  }
  return false;
}

}  // namespace annulus::tile

#endif  // ANNULUS_TILE_KEY_ROWS_CUH_
