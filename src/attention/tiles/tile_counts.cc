#include "attention/tiles/tile_counts.h"

#include <algorithm>
#include <utility>

#include "attention/tiles/tile_band.h"
#include "attention/tiles/tile_grid.h"
#include "pattern/classify.h"

namespace annulus::attention {
namespace {

// stopped() is asked after this many rows, which take some milliseconds.
constexpr std::int64_t kRowsBetweenStops = 1 << 14;

void count_band(const kernels::RowBand& band, const Problem& problem, TileCounts* counts) {
  const BandSums sums =
      sum_band(band, problem.seq_q, problem.seq_k, counts->tile_rows, counts->tile_columns);
  counts->copies = problem.batch * problem.heads;
  counts->ctas = counts->row_tiles * counts->copies;
  counts->full_tiles = sums.full_tiles * counts->copies;
  counts->partial_tiles = (sums.tiles - sums.full_tiles) * counts->copies;
  counts->longest_row = sums.longest_row;
  // The pipe model deals every CTA one by one up to this number of CTAs; with more, it estimates
  // the makespan and reads no lengths.
  if (counts->ctas > kMaxNamedRows) return;
  for (std::int64_t row = 0; row < counts->row_tiles; ++row) {
    counts->lengths.push_back(
        kernels::band_row(band, static_cast<int>(counts->tile_rows),
                          static_cast<int>(counts->tile_columns), static_cast<int>(problem.seq_q),
                          static_cast<int>(problem.seq_k), static_cast<int>(row))
            .count);
  }
}

// Full and partial tiles of one list.
std::pair<std::int64_t, std::int64_t> classes_of(const TileList& list, std::int64_t which) {
  if (list.lists == 1) return {list.full_tiles, list.partial_tiles};
  std::int64_t full = 0, partial = 0;
  for (std::int64_t row = 0; row < list.row_tiles; ++row) {
    if (list.tile_order == kernels::TileOrder::kList) {
      const std::int64_t* const begin = list.row_begin.data() + which * (list.row_tiles + 1) + row;
      for (std::int64_t at = begin[0]; at < begin[1]; ++at) {
        const bool is_partial = (list.tiles[static_cast<std::size_t>(at)] & 1) != 0;
        ++(is_partial ? partial : full);
      }
      continue;
    }
    const kernels::RowRuns& runs =
        list.runs[static_cast<std::size_t>(which * list.row_tiles + row)];
    const std::int64_t of_row = std::int64_t{runs.full_count[0]} + runs.full_count[1];
    full += of_row;
    partial += runs.count - of_row;
  }
  return {full, partial};
}

}  // namespace

TileCounts count_tiles(const Problem& problem, std::int64_t tile_rows, std::int64_t tile_columns) {
  return *count_tiles(problem, tile_rows, tile_columns, [] { return false; });
}

std::optional<TileCounts> count_tiles(const Problem& problem, std::int64_t tile_rows,
                                      std::int64_t tile_columns,
                                      const std::function<bool()>& stopped) {
  const pattern::Placement placement = placement_of(problem);
  TileCounts counts;
  counts.tile_rows = tile_rows;
  counts.tile_columns = tile_columns;
  counts.row_tiles = problem.seq_q / tile_rows + (problem.seq_q % tile_rows != 0);
  if (const auto band = find_band(problem.pattern, placement, tile_rows, tile_columns)) {
    count_band(*band, problem, &counts);
    return counts;
  }
  // The same grid that make_plan_tiles uses, so that the counts are those of the plan's list.
  const TileGrid grid = grid_of(problem, placement, tile_rows, tile_columns);
  pattern::Classifier classifier(problem.pattern, grid.placement, grid.rows_together, tile_columns);
  std::int64_t distinct = problem.pattern.distinct_heads(problem.heads);
  // `copies` must be the same for all distinct heads; if it cannot, every head counts for itself.
  if (problem.heads % distinct != 0) distinct = problem.heads;
  counts.copies = problem.batch * problem.heads / distinct;
  counts.ctas = counts.row_tiles * problem.heads * problem.batch;
  std::int64_t full = 0, partial = 0;
  for (std::int64_t head = 0; head < distinct; ++head) {
    for (std::int64_t row = 0; row < counts.row_tiles; ++row) {
      if (row % kRowsBetweenStops == 0 && stopped()) return std::nullopt;
      std::int64_t length = 0;
      for (const pattern::BlockRun& run : classifier.row(head, row)) {
        length += run.end - run.begin;
        (run.partial ? partial : full) += run.end - run.begin;
      }
      counts.lengths.push_back(static_cast<std::int32_t>(length));
      counts.longest_row = std::max(counts.longest_row, length);
    }
  }
  counts.full_tiles = full * counts.copies;
  counts.partial_tiles = partial * counts.copies;
  return counts;
}

TileCounts count_tiles(const TileList& list, const Problem& problem) {
  TileCounts counts;
  counts.tile_rows = list.tile_rows;
  counts.tile_columns = list.tile_columns;
  counts.row_tiles = list.row_tiles;
  if (list.tile_order == kernels::TileOrder::kBand) {
    count_band(list.band, problem, &counts);
    return counts;
  }
  // With several lists every head counts for itself, as heads may use them unequally often.
  const std::int64_t distinct = list.lists == 1 ? 1 : problem.heads;
  counts.copies = problem.batch * problem.heads / distinct;
  counts.ctas = counts.row_tiles * problem.heads * problem.batch;
  counts.longest_row = list.longest_row;
  std::int64_t full = 0, partial = 0;
  for (std::int64_t head = 0; head < distinct; ++head) {
    const std::int64_t which = list.list_of(head);
    for (std::int64_t row = 0; row < list.row_tiles; ++row) {
      counts.lengths.push_back(static_cast<std::int32_t>(list.row_length(which, row)));
    }
    const auto [list_full, list_partial] = classes_of(list, which);
    full += list_full;
    partial += list_partial;
  }
  counts.full_tiles = full * counts.copies;
  counts.partial_tiles = partial * counts.copies;
  return counts;
}

}  // namespace annulus::attention
