#include "attention/tiles/tile_counts.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "attention/tiles/planes.h"
#include "attention/tiles/row_groups.h"
#include "attention/tiles/tile_band.h"
#include "attention/tiles/tile_grid.h"
#include "attention/tiles/tile_runs.h"
#include "base/math.h"
#include "base/random.h"
#include "base/work.h"
#include "pattern/classify.h"
#include "pattern/node.h"

namespace annulus::attention {
namespace {

// stopped() is called once for this number of rows, which take some milliseconds.
constexpr std::int64_t kRowsBetweenStops = 1 << 14;

void count_band(const kernels::RowBand& band, const Problem& problem, std::int64_t max_named,
                TileCounts* counts) {
  const BandSums sums =
      sum_band(band, problem.seq_q, problem.seq_k, counts->tile_rows, counts->tile_columns);
  counts->copies = problem.batch * problem.heads;
  counts->ctas = counts->row_tiles * counts->copies;
  counts->full_tiles = sums.full_tiles * counts->copies;
  counts->partial_tiles = (sums.tiles - sums.full_tiles) * counts->copies;
  counts->longest_row = sums.longest_row;
  // Up to this number of CTAs, the pipe model deals out every CTA one by one. With more CTAs it
  // estimates the makespan and reads no lengths.
  if (counts->ctas > max_named) return;
  for (std::int64_t row = 0; row < counts->row_tiles; ++row) {
    counts->lengths.push_back(
        kernels::band_row(band, static_cast<int>(counts->tile_rows),
                          static_cast<int>(counts->tile_columns), static_cast<int>(problem.seq_q),
                          static_cast<int>(problem.seq_k), static_cast<int>(row))
            .count);
  }
}

std::int64_t leaves_of(const pattern::Node& node) {
  std::int64_t leaves = 0;
  pattern::each_leaf(node, [&](const auto&) { ++leaves; });
  return leaves;
}

// Full and partial tiles of one list whose rows are not groups.
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

// The rows of one list. Their lengths are unknown if they need not be listed.
struct Rows {
  std::vector<std::int32_t> lengths;
  std::int64_t full = 0, partial = 0;
  std::int64_t longest = 0;

  void add(std::int64_t length) {
    lengths.push_back(static_cast<std::int32_t>(length));
    longest = std::max(longest, length);
  }
  void add(const RowSums& sums) {
    full += sums.full_tiles;
    partial += sums.partial_tiles;
    longest = std::max(longest, sums.longest_row);
  }
};

// Whether the lengths of rows are listed.
bool are_named(const TileCounts& counts, const Problem& problem, const CountedHeads& counted) {
  return counts.row_tiles * problem.heads * problem.batch <= kMaxNamedRows ||
         counted.batches * counted.heads <=
             kMaxNamedRows / std::max<std::int64_t>(1, counts.row_tiles);
}

// Returns false if stopped() returned true before the end. With `grouped`, rows that follow from
// their numbers are counted together, and then no lengths are listed.
bool count_plane(pattern::Classifier& classifier, std::int64_t head, bool grouped,
                 const std::function<bool()>& stopped, Rows* rows) {
  if (grouped) {
    if (const auto groups = find_groups(classifier, head)) {
      rows->add(groups->sums());
      return !stopped();
    }
  }
  for (std::int64_t row = 0; row < classifier.rows(); ++row) {
    if (row % kRowsBetweenStops == 0 && stopped()) return false;
    std::int64_t length = 0;
    for (const pattern::BlockRun& run : classifier.row(head, row)) {
      length += run.end - run.begin;
      (run.partial ? rows->partial : rows->full) += run.end - run.begin;
    }
    rows->add(length);
  }
  return true;
}

// Adds the tile counts of every head of every batch to *counts. rows_of(batch, head) returns the
// row lengths and tile totals of the tile list of that head.
template <typename F>
void add_heads(const Problem& problem, const CountedHeads& counted, TileCounts* counts,
               const F& rows_of) {
  counts->copies = counted.copies;
  counts->ctas = counts->row_tiles * problem.heads * problem.batch;
  const bool named = are_named(*counts, problem, counted);
  for (std::int64_t batch = 0; batch < counted.batches; ++batch) {
    for (std::int64_t head = 0; head < counted.heads; ++head) {
      const Rows& rows = rows_of(batch, head);
      base::charge(1 + std::ssize(rows.lengths) / 8);
      if (named) {
        counts->lengths.insert(counts->lengths.end(), rows.lengths.begin(), rows.lengths.end());
      }
      counts->full_tiles += rows.full * counted.copies;
      counts->partial_tiles += rows.partial * counted.copies;
      counts->longest_row = std::max(counts->longest_row, rows.longest);
    }
  }
}

}  // namespace

CountedHeads::CountedHeads(const Problem& problem, std::int64_t distinct_batches,
                           std::int64_t distinct_heads)
    : batches(problem.batch % distinct_batches == 0 ? distinct_batches : problem.batch),
      heads(problem.heads % distinct_heads == 0 ? distinct_heads : problem.heads),
      copies(problem.batch / batches * (problem.heads / heads)) {}

CountedHeads counted_heads(const Problem& problem, const TileList& list) {
  const auto begin = list.head_list.begin();
  bool heads_agree = true;
  for (std::int64_t i = 0; i < std::ssize(list.head_list); ++i) {
    heads_agree = heads_agree && begin[i] == begin[i - i % problem.heads];
  }
  return {problem, list.batches, heads_agree ? 1 : problem.heads};
}

TileCounts counts_of(const Problem& problem, std::int64_t tile_rows, std::int64_t tile_columns) {
  TileCounts counts;
  counts.tile_rows = tile_rows;
  counts.tile_columns = tile_columns;
  counts.seq_k = problem.seq_k;
  counts.heads_per_kv = problem.heads / std::max<std::int64_t>(1, problem.kv_heads);
  return counts;
}

TileCounts count_tiles(const Problem& problem, std::int64_t tile_rows, std::int64_t tile_columns) {
  return *count_tiles(problem, tile_rows, tile_columns, [] { return false; });
}

std::optional<TileCounts> count_tiles(const Problem& problem, std::int64_t tile_rows,
                                      std::int64_t tile_columns,
                                      const std::function<bool()>& stopped) {
  const pattern::Placement placement = placement_of(problem);
  TileCounts counts = counts_of(problem, tile_rows, tile_columns);
  counts.row_tiles = problem.seq_q / tile_rows + (problem.seq_q % tile_rows != 0);
  const Planes planes(problem);
  if (const Pattern* only = planes.only_pattern()) {
    if (const auto band = find_band(*only, placement, tile_rows, tile_columns)) {
      count_band(*band, problem, kMaxNamedRows, &counts);
      return counts;
    }
  }
  const TileGrid grid = grid_of(problem, placement, tile_rows, tile_columns);
  const CountedHeads counted = {problem, planes.batches(), planes.heads()};
  const bool grouped = !are_named(counts, problem, counted) && has_runs(problem.pattern);
  std::vector<Rows> planes_rows;
  const bool done = planes.each(grid.placement, grid.rows_together, tile_columns,
                                [&](pattern::Classifier& classifier, std::int64_t head) {
                                  return count_plane(classifier, head, grouped, stopped,
                                                     &planes_rows.emplace_back());
                                });
  if (!done) return std::nullopt;
  add_heads(problem, counted, &counts, [&](std::int64_t batch, std::int64_t head) -> const Rows& {
    return planes_rows[static_cast<std::size_t>(planes.plane_of(batch, head))];
  });
  return counts;
}

TileCounts estimate_tiles(const Problem& problem, std::int64_t tile_rows,
                          std::int64_t tile_columns) {
  constexpr std::int64_t kMaxNamed = 2048, kMaxPlanes = 4;
  // kMaxCells is the limit for one plane.
  constexpr std::int64_t kMinRows = 2, kMaxRows = 32, kMaxCells = 1 << 15;
  // Beyond these limits a sample would take long, and all tiles count as kept. But rows of few runs
  // are always sampled, because they are fast.
  constexpr std::int64_t kMaxColumns = 1 << 17, kMaxLeaves = 64;
  const pattern::Placement placement = placement_of(problem);
  TileCounts counts = counts_of(problem, tile_rows, tile_columns);
  counts.row_tiles = problem.seq_q / tile_rows + (problem.seq_q % tile_rows != 0);
  counts.ctas = counts.row_tiles * problem.heads * problem.batch;
  const Planes planes(problem);
  if (const Pattern* only = planes.only_pattern()) {
    if (const auto band = find_band(*only, placement, tile_rows, tile_columns)) {
      count_band(*band, problem, kMaxNamed, &counts);
      return counts;
    }
  }
  counts.copies = problem.heads * problem.batch;
  const std::int64_t columns =
      std::max<std::int64_t>(1, base::ceil_div(problem.seq_k, tile_columns));
  if ((columns > kMaxColumns && !has_runs(problem.pattern)) ||
      leaves_of(problem.pattern.node()) > kMaxLeaves) {
    counts.longest_row = columns;
    counts.full_tiles = counts.ctas * columns;
    return counts;
  }
  const TileGrid grid = grid_of(problem, placement, tile_rows, tile_columns);
  const std::int64_t looks = std::clamp(kMaxCells / columns, kMinRows, kMaxRows);
  double full = 0, partial = 0;
  std::int64_t rows = 0, plane = 0;
  planes.each(grid.placement, grid.rows_together, tile_columns,
              [&](pattern::Classifier& classifier, std::int64_t head) {
                const std::int64_t count = classifier.rows();
                // Rows are drawn at random, because rows at equal distances may all be alike.
                base::Random random(1);
                for (std::int64_t look = 0; look < std::min(looks, count); ++look) {
                  const std::int64_t row = count <= looks
                                               ? look
                                               : static_cast<std::int64_t>(
                                                     random.uniform() * static_cast<double>(count));
                  std::int64_t length = 0;
                  for (const pattern::BlockRun& run : classifier.row(head, row)) {
                    length += run.end - run.begin;
                    (run.partial ? partial : full) += static_cast<double>(run.end - run.begin);
                  }
                  counts.longest_row = std::max(counts.longest_row, length);
                  ++rows;
                }
                return ++plane < kMaxPlanes;
              });
  const double share = rows == 0 ? 0 : static_cast<double>(counts.ctas) / static_cast<double>(rows);
  counts.full_tiles = static_cast<std::int64_t>(full * share);
  counts.partial_tiles = static_cast<std::int64_t>(partial * share);
  return counts;
}

TileCounts count_tiles(const TileList& list, const Problem& problem) {
  TileCounts counts = counts_of(problem, list.tile_rows, list.tile_columns);
  counts.row_tiles = list.row_tiles;
  if (list.tile_order == kernels::TileOrder::kBand) {
    count_band(list.band, problem, kMaxNamedRows, &counts);
    return counts;
  }
  const CountedHeads counted = counted_heads(problem, list);
  const bool named = are_named(counts, problem, counted);
  std::vector<Rows> lists_rows;
  for (std::int64_t which = 0; which < list.lists; ++which) {
    Rows& rows = lists_rows.emplace_back();
    if (list.groups.empty() || named) {
      for (std::int64_t row = 0; row < list.row_tiles; ++row) rows.add(list.row_length(which, row));
    }
    if (list.groups.empty()) {
      std::tie(rows.full, rows.partial) = classes_of(list, which);
    } else {
      for (const kernels::RowGroup& group : list.groups_of(which)) {
        rows.add(sum_group(group, list.runs));
      }
    }
  }
  add_heads(problem, counted, &counts, [&](std::int64_t batch, std::int64_t head) -> const Rows& {
    return lists_rows[static_cast<std::size_t>(list.list_of(head, batch))];
  });
  return counts;
}

}  // namespace annulus::attention
