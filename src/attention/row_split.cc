#include "attention/row_split.h"

#include <fmt/core.h>

#include <algorithm>

#include "attention/pipe_model.h"
#include "attention/plan.h"
#include "attention/tile_counts.h"
#include "base/fail.h"

namespace annulus::attention {
namespace {

using kernels::MergedRow;
using kernels::RowSegment;

// A part has at least so many steps: fewer are over before its copies flow, and cost a state each.
constexpr std::int64_t kLeastSteps = 8;
// A model is no measurement: what it saves must be this share of the whole at least.
constexpr double kLeastGain = 0.15;
// With more, each candidate would take milliseconds to price.
constexpr std::int64_t kMostCtas = std::int64_t{1} << 15;
// Of one batch, asked for: lists of 256 MB.
constexpr std::int64_t kMostParts = std::int64_t{1} << 24;

std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

// Predicted cycles with these parts, what joins them included.
double cycles_of(const PipeDevice& device, const TileList& tiles, const Problem& problem,
                 const KernelConfig& config, const KernelFeatures& features,
                 const RowSplit& split) {
  const TileCounts counts = count_parts(tiles, split, problem);
  const double made = predict(device, config, features.dims, counts,
                              estimate_work(config, features, counts), least_bytes(problem))
                          .predicted_cycles;
  return made + merge_cycles(device, split, problem, tiles.tile_rows);
}

std::vector<RowSegment> segments_of(const TileList& tiles, std::int64_t which,
                                    std::int64_t most_tiles, std::int64_t step,
                                    std::vector<MergedRow>* merged) {
  std::vector<RowSegment> segments;
  int slot = 0;
  for (std::int64_t row = 0; row < tiles.row_tiles; ++row) {
    const std::int64_t length = tiles.row_length(which, row);
    if (length <= most_tiles) {
      segments.push_back({static_cast<int>(row), 0, static_cast<int>(length), -1});
      continue;
    }
    const std::int64_t steps = ceil_div(length, step);
    const std::int64_t parts = ceil_div(steps, most_tiles / step);
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

std::int64_t RowSplit::workspace_bytes(std::int64_t tile_rows, std::int64_t dim_v,
                                       std::int64_t heads) const {
  return heads * slots * tile_rows * (dim_v + 2) * static_cast<std::int64_t>(sizeof(float));
}

RowSplit split_rows(const TileList& tiles, std::int64_t most_tiles, std::int64_t step) {
  most_tiles = most_tiles / step * step;
  RowSplit split;
  split.most_tiles = most_tiles;
  if (tiles.longest_row <= most_tiles) return split;
  std::vector<std::vector<RowSegment>> segments;
  std::vector<std::vector<MergedRow>> merged(static_cast<std::size_t>(tiles.lists));
  for (std::int64_t which = 0; which < tiles.lists; ++which) {
    auto& rows = merged[static_cast<std::size_t>(which)];
    segments.push_back(segments_of(tiles, which, most_tiles, step, &rows));
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

TileCounts count_parts(const TileList& tiles, const RowSplit& split, const Problem& problem) {
  TileCounts counts;
  counts.tile_rows = tiles.tile_rows;
  counts.tile_columns = tiles.tile_columns;
  counts.row_tiles = split.segment_count;
  const std::int64_t distinct = tiles.lists == 1 ? 1 : problem.heads;
  counts.copies = problem.batch * problem.heads / distinct;
  counts.ctas = counts.row_tiles * problem.heads * problem.batch;
  std::int64_t all = 0;
  for (std::int64_t head = 0; head < distinct; ++head) {
    for (std::int64_t at = 0; at < split.segment_count; ++at) {
      const int count =
          split.segments[static_cast<std::size_t>(tiles.list_of(head) * split.segment_count + at)]
              .count;
      counts.lengths.push_back(count);
      counts.longest_row = std::max<std::int64_t>(counts.longest_row, count);
      all += count;
    }
  }
  // Splitting changes no class: the shares are those of all lists.
  const double full = static_cast<double>(tiles.full_tiles) /
                      static_cast<double>(std::max<std::int64_t>(1, tiles.kept_tiles()));
  counts.full_tiles = static_cast<std::int64_t>(full * static_cast<double>(all)) * counts.copies;
  counts.partial_tiles = all * counts.copies - counts.full_tiles;
  return counts;
}

bool takes_parts(const KernelConfig& config) {
  return config.family != Family::kWgmma8 || config.blocks == 1;
}

SplitChoice choose_split(const LaunchPlan& plan, const KernelFeatures& features,
                         const DeviceLimits& limits, int parts) {
  const Problem& problem = plan.problem;
  const KernelConfig& config = plan.config;
  const TileList& tiles = *plan.tiles;
  if (parts == 1 || problem.batch == 0 || tiles.longest_row == 0) return {};
  if (!takes_parts(config)) {
    return {{}, "not split, as this configuration leaves a kernel no registers for parts"};
  }
  if (features.placed) return {{}, "not split, as positions are read row by row"};
  if (plan.group.rows > 1) {
    return {{}, "not split, as CTAs of a cluster take neighbouring ones whole"};
  }
  const std::int64_t step = config.blocks;
  const auto with_parts = [&](std::int64_t count) {
    return split_rows(
        tiles, std::max(ceil_div(ceil_div(tiles.longest_row, count), step) * step, step), step);
  };
  if (parts > 1) {
    if (tiles.row_tiles * problem.heads > kMostParts / parts) {
      base::fail(ErrorCode::kUnsupported,
                 "split_rows {} could make {} parts of each of {} tile rows of {} heads, more than "
                 "2^24 in all; ask for fewer, or for none with 1",
                 parts, parts, tiles.row_tiles, problem.heads);
    }
    SplitChoice choice = {with_parts(parts), ""};
    choice.reason =
        choice.split.empty()
            ? fmt::format("not split into {} as asked for, as none has two steps", parts)
            : fmt::format("split into {}, as asked for", parts);
    return choice;
  }

  const std::int64_t ctas = tiles.row_tiles * problem.heads * problem.batch;
  if (tiles.longest_row < 2 * kLeastSteps * step) {
    return {{}, fmt::format("not split, as none has {} steps", 2 * kLeastSteps)};
  }
  if (ctas > kMostCtas) return {{}, fmt::format("not split, as there are {} in all", ctas)};
  const TileCounts whole = count_tiles(tiles, problem);
  // Longest first, no order of the rows takes longer than their mean and one of them.
  const double short_row = kLeastGain * static_cast<double>(whole.tiles()) / limits.multiprocessors;
  if (static_cast<double>(whole.longest_row) < short_row) {
    return {{}, "not split, as the longest is short beside what each multiprocessor has to do"};
  }
  const PipeDevice device = pipe_device(limits);
  const Prediction unsplit = predict(device, config, features.dims, whole,
                                     estimate_work(config, features, whole), least_bytes(problem));
  const double before = unsplit.predicted_cycles;
  SplitChoice choice;
  double least = before * (1 - kLeastGain);
  std::int64_t taken = 1;
  // Up to parts that are themselves short beside the whole.
  const double least_tiles = std::max(static_cast<double>(kLeastSteps * step), short_row);
  for (std::int64_t count = 2; count <= limits.multiprocessors; count += (count + 1) / 2) {
    if (static_cast<double>(tiles.longest_row) < static_cast<double>(count) * least_tiles) break;
    RowSplit split = with_parts(count);
    if (split.empty() || split.segment_count * problem.heads * problem.batch > 2 * kMostCtas) {
      break;
    }
    const double cycles = cycles_of(device, tiles, problem, config, features, split);
    if (cycles >= least) continue;
    least = cycles;
    taken = count;
    choice.split = std::move(split);
  }
  choice.reason =
      taken == 1
          ? fmt::format("not split, as the model predicts no clear gain over {:.0f} cycles", before)
          : fmt::format(
                "split into {}: the model predicts {:.0f} cycles instead of {:.0f}, "
                "in which the longest would leave multiprocessors idle",
                taken, least, before);
  return choice;
}

}  // namespace annulus::attention
