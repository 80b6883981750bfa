#include <algorithm>
#include <limits>
#include <new>
#include <numeric>

#include "base/fail.h"
#include "pattern/classify.h"

namespace annulus::pattern {
namespace {

constexpr std::int64_t kMostKept = std::int64_t{1} << 31;

}  // namespace

BlockLayout make_layout(const Pattern& pattern, const Extent& extent, std::int64_t block_rows,
                        std::int64_t block_columns, std::int64_t heads,
                        const PatternContext& context) {
  Classifier classifier(pattern, Placement::of(extent, context), block_rows, block_columns);
  if (classifier.columns() > std::numeric_limits<std::int32_t>::max()) {
    base::fail(ErrorCode::kInvalidArgument, "{} columns of blocks; a layout holds fewer than 2^31",
               classifier.columns());
  }
  BlockLayout layout{.block_rows = block_rows,
                     .block_columns = block_columns,
                     .seq_q = extent.seq_q,
                     .seq_k = extent.seq_k,
                     .heads = distinct_heads(pattern.node(), heads) == 1 ? 1 : heads,
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
