#ifndef ANNULUS_ATTENTION_TILES_TILE_BAND_H_
#define ANNULUS_ATTENTION_TILES_TILE_BAND_H_

// Bands: patterns in which every query sees one run of keys that moves with the query, such as
// dense, causal, window, sink and prefix, their intersections, and unions that are again one run
// (causal | prefix(n)). Their tile rows follow from a few numbers, whatever the lengths: nothing is
// stored for a row, and sums over all rows take as long for a billion tokens as for a thousand.

#include <cstdint>
#include <optional>

#include "annulus/pattern.h"
#include "params/tile_order_params.h"
#include "pattern/classify.h"

namespace annulus::attention {

// The band of a pattern; nullopt if the pattern is not a band, or if the tensors are more than one
// segment of the sequence. The band's member `descending` is for tiles of M x N. Requires: lengths
// and positions within 2^30.
std::optional<kernels::RowBand> find_band(const Pattern& pattern,
                                          const pattern::Placement& placement,
                                          std::int64_t tile_rows, std::int64_t tile_columns);

struct BandSums {
  std::int64_t tiles = 0;
  std::int64_t full_tiles = 0;
  std::int64_t longest_row = 0;
  std::int64_t empty_rows = 0;
};

// The sums over all rows of tiles of M x N, each row as kernels::band_row computes it.
BandSums sum_band(const kernels::RowBand& band, std::int64_t seq_q, std::int64_t seq_k,
                  std::int64_t tile_rows, std::int64_t tile_columns);

}  // namespace annulus::attention

#endif  // ANNULUS_ATTENTION_TILES_TILE_BAND_H_
