#include "attention/tile_counts.h"

#include <algorithm>
#include <numeric>

#include "pattern/classify.h"

namespace annulus::attention {
namespace {

void sum_up(TileCounts* counts, std::int64_t full, std::int64_t partial) {
  counts->ctas = static_cast<std::int64_t>(counts->lengths.size()) * counts->copies;
  counts->full_tiles = full * counts->copies;
  counts->partial_tiles = partial * counts->copies;
  for (const std::int32_t length : counts->lengths) {
    counts->longest_row = std::max<std::int64_t>(counts->longest_row, length);
  }
}

}  // namespace

TileCounts count_tiles(const Problem& problem, std::int64_t tile_rows, std::int64_t tile_columns) {
  TileCounts counts;
  counts.tile_rows = tile_rows;
  counts.tile_columns = tile_columns;
  pattern::Classifier classifier(problem.pattern, placement_of(problem), tile_rows, tile_columns);
  counts.row_tiles = classifier.rows();
  std::int64_t distinct = problem.pattern.distinct_heads(problem.heads);
  if (problem.heads % distinct != 0) distinct = problem.heads;  // copies of all, or none
  counts.copies = problem.batch * problem.heads / distinct;
  std::int64_t full = 0, partial = 0;
  for (std::int64_t head = 0; head < distinct; ++head) {
    for (std::int64_t row = 0; row < counts.row_tiles; ++row) {
      std::int64_t length = 0;
      for (const pattern::BlockRun& run : classifier.row(head, row)) {
        length += run.end - run.begin;
        (run.partial ? partial : full) += run.end - run.begin;
      }
      counts.lengths.push_back(static_cast<std::int32_t>(length));
    }
  }
  sum_up(&counts, full, partial);
  return counts;
}

TileCounts count_tiles(const LaunchPlan& plan) {
  const TileList& list = plan.tiles;
  TileCounts counts;
  counts.tile_rows = list.tile_rows;
  counts.tile_columns = list.tile_columns;
  counts.row_tiles = list.row_tiles;
  const std::int64_t distinct = list.lists == 1 ? 1 : plan.problem.heads;
  counts.copies = plan.problem.batch * plan.problem.heads / distinct;
  std::int64_t full = 0, partial = 0;
  for (std::int64_t head = 0; head < distinct; ++head) {
    const std::int64_t* begin = list.row_begin.data() + list.list_of(head) * (list.row_tiles + 1);
    for (std::int64_t row = 0; row < list.row_tiles; ++row) {
      counts.lengths.push_back(static_cast<std::int32_t>(begin[row + 1] - begin[row]));
    }
    for (std::int64_t at = begin[0]; at < begin[list.row_tiles]; ++at) {
      const bool is_partial = (list.tiles[static_cast<std::size_t>(at)] & 1) != 0;
      ++(is_partial ? partial : full);
    }
  }
  sum_up(&counts, full, partial);
  return counts;
}

}  // namespace annulus::attention
