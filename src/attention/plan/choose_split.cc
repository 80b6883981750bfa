#include "attention/plan/choose_split.h"

#include <fmt/core.h>

#include <algorithm>
#include <optional>

#include "attention/cost/pipe_model.h"
#include "attention/tiles/tile_counts.h"
#include "base/fail.h"
#include "base/math.h"

namespace annulus::attention {
namespace {

// The least number of steps of a part that the model considers. Shorter parts end before their
// copies are in full flow, and the state of each part is written and read again.
constexpr std::int64_t kLeastSteps = 8;
// The least share of the time that a split must save by the model's prediction. A smaller gain is
// not trusted, because the prediction is not a measurement.
constexpr double kLeastGain = 0.15;
// With more CTAs, the prediction of each candidate would take milliseconds.
constexpr std::int64_t kMaxCtas = std::int64_t{1} << 15;
// The most parts of one batch that a caller may ask for; their lists take 256 MB.
constexpr std::int64_t kMaxParts = std::int64_t{1} << 24;

std::int64_t step_of(const SplitQuestion& question) {
  return cta_shape(question.config).step_tiles;
}

// The split whose longest row has `count` parts of whole steps, and whose other rows have parts of
// the same length.
KvSplit with_parts(const SplitQuestion& question, std::int64_t count) {
  const TileList& tiles = question.tiles;
  const std::int64_t step = step_of(question);
  return kv_splits(
      tiles, std::max(base::round_up(base::ceil_div(tiles.longest_row, count), step), step), step);
}

double cycles_of(const PipeDevice& device, const SplitQuestion& question,
                 const TileCounts& counts) {
  const auto& [problem, config, tiles, group, features, limits] = question;
  return predict(device, config, features.dims, counts, estimate_work(config, features, counts),
                 least_bytes(problem))
      .predicted_cycles;
}

// Predicted cycles of a split, including the launch that joins the parts.
double cycles_of(const PipeDevice& device, const SplitQuestion& question, const KvSplit& split) {
  const TileCounts counts = count_parts(question.tiles, split, question.problem);
  return cycles_of(device, question, counts) +
         merge_cycles(device, split, question.problem, question.tiles.tile_rows);
}

// Why the kernel cannot compute parts at all, or nullopt.
std::optional<std::string> why_no_parts(const SplitQuestion& question) {
  if (!supports_kv_splits(question.config)) {
    return "not split, as this configuration leaves a kernel no registers for parts";
  }
  if (question.features.positions != kernels::Positions::kOneSegment) {
    return "not split, as rows or keys are several segments";
  }
  if (question.group.rows > 1) {
    return "not split, as CTAs of a cluster take whole neighbouring rows";
  }
  return std::nullopt;
}

SplitChoice split_as_asked(const SplitQuestion& question, int parts) {
  const TileList& tiles = question.tiles;
  const std::int64_t heads = question.problem.heads;
  if (tiles.row_tiles * heads > kMaxParts / parts) {
    base::fail(ErrorCode::kUnsupported,
               "kv_splits {} could make {} parts of each of {} tile rows of {} heads, more than "
               "2^24 in all; set fewer, or 1 for no split",
               parts, parts, tiles.row_tiles, heads);
  }
  SplitChoice choice = {with_parts(question, parts), ""};
  choice.reason =
      choice.split.empty()
          ? fmt::format("not split into {} as requested, as no row has two steps", parts)
          : fmt::format("split into {}, as requested", parts);
  return choice;
}

// Predicts the time of splits into more and more parts (2, 3, 5, 8, ...) and takes the fastest. It
// stops when parts become shorter than kLeastSteps steps or than `short_row` tiles (a length that
// delays no CTA), or when there are so many parts that the prediction is slow.
SplitChoice cheapest_split(const SplitQuestion& question, const TileCounts& whole, double short_row,
                           int max_parts) {
  const TileList& tiles = question.tiles;
  const Problem& problem = question.problem;
  const PipeDevice device = pipe_device(question.limits);
  const double before = cycles_of(device, question, whole);
  SplitChoice choice;
  double least = before * (1 - kLeastGain);
  std::int64_t taken = 1;
  const double least_tiles =
      std::max(static_cast<double>(kLeastSteps * step_of(question)), short_row);
  // A row in more parts than there are multiprocessors gains nothing. The bound on CTAs is twice
  // the bound of choose_split(), so a split into two is always considered.
  const int most = max_parts > 0 ? std::min(max_parts, question.limits.multiprocessors)
                                 : question.limits.multiprocessors;
  for (std::int64_t count = 2; count <= most; count += (count + 1) / 2) {
    if (static_cast<double>(tiles.longest_row) < static_cast<double>(count) * least_tiles) break;
    KvSplit split = with_parts(question, count);
    if (split.empty() || split.segment_count * problem.heads * problem.batch > 2 * kMaxCtas) {
      break;
    }
    const double cycles = cycles_of(device, question, split);
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

}  // namespace

SplitChoice choose_split(const SplitQuestion& question, int parts, int max_parts) {
  const Problem& problem = question.problem;
  const TileList& tiles = question.tiles;
  if (parts == 1 || problem.batch == 0 || tiles.longest_row == 0) return {};
  if (const auto reason = why_no_parts(question)) return {{}, *reason};
  if (parts > 1) return split_as_asked(question, parts);
  const std::int64_t ctas = tiles.row_tiles * problem.heads * problem.batch;
  if (tiles.longest_row < 2 * kLeastSteps * step_of(question)) {
    return {{}, fmt::format("not split, as no row has {} steps", 2 * kLeastSteps)};
  }
  if (ctas > kMaxCtas) return {{}, fmt::format("not split, as there are {} in all", ctas)};
  const TileCounts whole = count_tiles(tiles, problem);
  // CTAs in launch order never take longer than their mean for each multiprocessor plus the longest
  // row. If the longest row is below kLeastGain of that mean, no split can gain enough.
  const double short_row =
      kLeastGain * static_cast<double>(whole.tiles()) / question.limits.multiprocessors;
  if (static_cast<double>(whole.longest_row) < short_row) {
    return {{}, "not split, as the longest is short compared with the work of each multiprocessor"};
  }
  return cheapest_split(question, whole, short_row, max_parts);
}

}  // namespace annulus::attention
