#include <algorithm>
#include <limits>
#include <new>
#include <numeric>

#include "base/fail.h"
#include "pattern/classify.h"

namespace annulus::pattern {
namespace {

// Rows that are summed together: long enough that patterns whose rows agree cost next to nothing,
// short enough that the keys on which rows differ stay few.
constexpr std::int64_t kRowsTogether = 64;

constexpr std::int64_t kMostKept = std::int64_t{1} << 31;

}  // namespace

std::int64_t visible_pairs(const Pattern& pattern, std::int64_t head, const Extent& extent) {
  check_extent(extent);
  Evaluator evaluator(pattern);
  IntervalSet differ;
  std::int64_t total = 0;
  const auto add = [&](std::int64_t rows, std::int64_t keys) {
    std::int64_t pairs = 0;
    if (__builtin_mul_overflow(rows, keys, &pairs) ||
        __builtin_add_overflow(total, pairs, &total)) {
      base::fail(ErrorCode::kInvalidArgument, "Sq {} x Sk {} has more pairs than 2^63",
                 extent.seq_q, extent.seq_k);
    }
  };
  const Interval all = extent.queries();
  for (std::int64_t q = all.begin; q < all.end; q += kRowsTogether) {
    const Interval queries = intersection({q, q + kRowsTogether}, all);
    const Bounds& bounds = evaluator.range(head, queries, extent.keys());
    add(queries.size(), size(bounds.all));
    subtract(bounds.any, bounds.all, &differ);
    if (differ.empty()) continue;
    // Outside these keys the rows agree; inside them each row is counted by itself.
    const Interval hull = {differ.front().begin, differ.back().end};
    const IntervalSet inside = {hull};
    IntervalSet agreed;
    intersect(bounds.all, inside, &agreed);
    add(queries.size(), -size(agreed));
    for (std::int64_t row = queries.begin; row < queries.end; ++row) {
      add(1, size(evaluator.row(head, row, hull)));
    }
  }
  return total;
}

Density density(const Pattern& pattern, const Extent& extent) {
  double visible = 0;
  for (std::int64_t head = 0; head < pattern.heads(); ++head) {
    visible += static_cast<double>(visible_pairs(pattern, head, extent));
  }
  const double all = static_cast<double>(extent.seq_q) * static_cast<double>(extent.seq_k) *
                     static_cast<double>(pattern.heads());
  return {all > 0 ? visible / all : 0.0};
}

BlockLayout make_layout(const Pattern& pattern, const Extent& extent, std::int64_t block_rows,
                        std::int64_t block_columns) {
  Classifier classifier(pattern, extent, block_rows, block_columns);
  if (classifier.columns() > std::numeric_limits<std::int32_t>::max()) {
    base::fail(ErrorCode::kInvalidArgument, "{} columns of blocks; a layout holds fewer than 2^31",
               classifier.columns());
  }
  BlockLayout layout{.block_rows = block_rows,
                     .block_columns = block_columns,
                     .seq_q = extent.seq_q,
                     .seq_k = extent.seq_k,
                     .heads = pattern.heads(),
                     .indptr = {0},
                     .indices = {},
                     .partial = {}};
  // The runs are few, the blocks may be millions: their memory is taken once.
  std::vector<BlockRun> runs;
  std::int64_t kept = 0;
  bool any_partial = false;
  for (std::int64_t head = 0; head < layout.heads; ++head) {
    for (std::int64_t row = 0; row < classifier.rows(); ++row) {
      for (const BlockRun& run : classifier.row(head, row)) {
        runs.push_back(run);
        kept += run.end - run.begin;
        any_partial = any_partial || run.partial;
      }
      layout.indptr.push_back(kept);
      if (kept > kMostKept) {
        base::fail(ErrorCode::kOutOfMemory,
                   "more than 2^31 blocks of {} x {} are kept of Sq {} x Sk {}; use larger blocks",
                   block_rows, block_columns, extent.seq_q, extent.seq_k);
      }
    }
  }
  try {
    layout.indices.resize(static_cast<std::size_t>(kept));
    if (any_partial) layout.partial.resize(static_cast<std::size_t>(kept));
  } catch (const std::bad_alloc&) {
    base::fail(ErrorCode::kOutOfMemory, "no memory for a layout of {} kept blocks", kept);
  }
  std::size_t at = 0;
  for (const BlockRun& run : runs) {
    const auto count = static_cast<std::size_t>(run.end - run.begin);
    const auto first = layout.indices.begin() + static_cast<std::ptrdiff_t>(at);
    std::iota(first, first + static_cast<std::ptrdiff_t>(count),
              static_cast<std::int32_t>(run.begin));
    if (run.partial) std::fill_n(layout.partial.data() + at, count, std::uint8_t{1});
    at += count;
  }
  return layout;
}

}  // namespace annulus::pattern
