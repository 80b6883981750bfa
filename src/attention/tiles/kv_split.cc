#include "attention/tiles/kv_split.h"

#include <algorithm>

#include "base/math.h"

namespace annulus::attention {
namespace {

using kernels::MergedRow;
using kernels::RowSegment;

// The segments of one list, the longest first. *merged gets its split rows. Slots are numbered from
// 0 in each list, because every head has slots of its own.
std::vector<RowSegment> segments_of(const TileList& tiles, std::int64_t which,
                                    std::int64_t max_tiles, std::int64_t step,
                                    std::vector<MergedRow>* merged) {
  std::vector<RowSegment> segments;
  int slot = 0;
  for (std::int64_t row = 0; row < tiles.row_tiles; ++row) {
    const std::int64_t length = tiles.row_length(which, row);
    if (length <= max_tiles) {
      segments.push_back({static_cast<int>(row), 0, static_cast<int>(length), -1});
      continue;
    }
    // The row's steps are divided among its parts so that the parts differ by one step at most.
    const std::int64_t steps = base::ceil_div(length, step);
    const std::int64_t parts = base::ceil_div(steps, max_tiles / step);
    merged->push_back({static_cast<int>(row), slot, static_cast<int>(parts), 0});
    for (std::int64_t part = 0; part < parts; ++part) {
      const std::int64_t begin = steps * part / parts * step;
      const std::int64_t end = std::min(steps * (part + 1) / parts * step, length);
      segments.push_back(
          {static_cast<int>(row), static_cast<int>(begin), static_cast<int>(end - begin), slot++});
    }
  }
  std::ranges::stable_sort(
      segments, [](const RowSegment& a, const RowSegment& b) { return a.count > b.count; });
  return segments;
}

}  // namespace

std::int64_t KvSplit::workspace_bytes(std::int64_t tile_rows, std::int64_t dim_v,
                                      std::int64_t heads) const {
  return heads * slots * tile_rows * (dim_v + 2) * static_cast<std::int64_t>(sizeof(float));
}

KvSplit kv_splits(const TileList& tiles, std::int64_t max_tiles, std::int64_t step) {
  // The lists of all heads get the same number of entries, so a kernel finds list L by a
  // multiplication. The number of slots is the number that the list with the most slots needs.
  max_tiles = max_tiles / step * step;
  KvSplit split;
  split.max_tiles = max_tiles;
  if (tiles.longest_row <= max_tiles) return split;
  std::vector<std::vector<RowSegment>> segments;
  std::vector<std::vector<MergedRow>> merged(static_cast<std::size_t>(tiles.lists));
  for (std::int64_t which = 0; which < tiles.lists; ++which) {
    auto& rows = merged[static_cast<std::size_t>(which)];
    segments.push_back(segments_of(tiles, which, max_tiles, step, &rows));
    const auto count = [](const auto& list) { return static_cast<std::int64_t>(list.size()); };
    split.segment_count = std::max(split.segment_count, count(segments.back()));
    split.merged_count = std::max(split.merged_count, count(rows));
    if (!rows.empty()) {
      split.slots = std::max<std::int64_t>(split.slots, rows.back().first_slot + rows.back().slots);
    }
  }
  for (auto& list : segments) {
    list.resize(static_cast<std::size_t>(split.segment_count), {-1, 0, 0, -1});
    split.segments.insert(split.segments.end(), list.begin(), list.end());
  }
  for (auto& list : merged) {
    list.resize(static_cast<std::size_t>(split.merged_count), {0, 0, 0, 0});
    split.merged.insert(split.merged.end(), list.begin(), list.end());
  }
  return split;
}

TileCounts count_parts(const TileList& tiles, const KvSplit& split, const Problem& problem) {
  TileCounts counts = counts_of(problem, tiles.tile_rows, tiles.tile_columns);
  counts.row_tiles = split.segment_count;
  const CountedHeads counted = counted_heads(problem, tiles);
  counts.copies = counted.copies;
  counts.ctas = counts.row_tiles * problem.heads * problem.batch;
  std::int64_t all = 0;
  for (std::int64_t batch = 0; batch < counted.batches; ++batch) {
    for (std::int64_t head = 0; head < counted.heads; ++head) {
      const std::int64_t first = tiles.list_of(head, batch) * split.segment_count;
      for (std::int64_t at = first; at < first + split.segment_count; ++at) {
        const int count = split.segments[static_cast<std::size_t>(at)].count;
        counts.lengths.push_back(count);
        counts.longest_row = std::max<std::int64_t>(counts.longest_row, count);
        all += count;
      }
    }
  }
  // Splitting does not change which tiles are full, so the share of full tiles is the share in all
  // lists together.
  const double full = static_cast<double>(tiles.full_tiles) /
                      static_cast<double>(std::max<std::int64_t>(1, tiles.kept_tiles()));
  counts.full_tiles = static_cast<std::int64_t>(full * static_cast<double>(all)) * counts.copies;
  counts.partial_tiles = all * counts.copies - counts.full_tiles;
  return counts;
}

}  // namespace annulus::attention
