#include "autotune/stand_in.h"

#include <algorithm>
#include <span>
#include <utility>
#include <vector>

#include "attention/tiles/tile_list.h"
#include "autotune/parts.h"
#include "autotune/shape_key.h"
#include "base/math.h"
#include "base/random.h"
#include "pattern/batches.h"
#include "pattern/classify.h"

namespace annulus::autotune {
namespace {

constexpr std::int64_t kLayouts = 16;  // of heads that differ

// The blocks of one row, ascending: the first and the last of those that it sees, of which a run
// always keeps so many, and of the others as many as the row may have.
std::vector<std::int32_t> draw_row(std::span<const pattern::BlockRun> seen,
                                   const Selection& selection, base::Random& random) {
  std::vector<std::int32_t> all;
  for (const pattern::BlockRun& run : seen) {
    for (std::int64_t j = run.begin; j < run.end; ++j) all.push_back(static_cast<std::int32_t>(j));
  }
  const auto count = static_cast<std::int64_t>(all.size());
  const std::int64_t most = std::min(count, blocks_of_row(selection));
  const std::int64_t first = std::min(most, selection.sink_blocks);
  const std::int64_t last = std::min(most - first, selection.diagonal_blocks);
  // What is kept goes to the front, and what is drawn behind it.
  std::rotate(all.begin() + first, all.end() - last, all.end());
  for (std::int64_t at = first + last; at < most; ++at) {
    const std::int64_t other = at + random.below(static_cast<std::uint32_t>(count - at));
    std::swap(all[static_cast<std::size_t>(at)], all[static_cast<std::size_t>(other)]);
  }
  all.resize(static_cast<std::size_t>(most));
  std::ranges::sort(all);
  return all;
}

}  // namespace

Problem stand_in(const Problem& problem, const Selection& selection, std::uint64_t seed) {
  Problem placed = problem;
  placed.q0.reset();
  placed.k0.reset();
  placed.total_k.reset();
  BlockLayout layout;
  layout.block_rows = selection.block_rows;
  layout.block_columns = selection.block_columns;
  layout.seq_q = problem.seq_q;
  layout.seq_k = problem.seq_k;
  const std::int64_t distinct = problem.pattern.distinct_heads(problem.heads);
  layout.heads = std::min(problem.heads, base::round_up(kLayouts, distinct));
  for (std::int64_t head = 0; head < problem.heads; ++head) {
    layout.head_map.push_back(static_cast<std::int32_t>(head % layout.heads));
  }
  layout.indptr = {0};
  base::Random random(seed);
  // All batches see the same, or a selection is refused.
  pattern::Classifier classifier(pattern::for_batches(placed.pattern, placed.batch),
                                 attention::placement_of(placed), selection.block_rows,
                                 selection.block_columns);
  for (std::int64_t head = 0; head < layout.heads; ++head) {
    for (std::int64_t row = 0; row < classifier.rows(); ++row) {
      const std::vector<std::int32_t> drawn =
          draw_row(classifier.row(head % distinct, row), selection, random);
      layout.indices.insert(layout.indices.end(), drawn.begin(), drawn.end());
      layout.indptr.push_back(static_cast<std::int64_t>(layout.indices.size()));
    }
  }
  placed.pattern = problem.pattern & blocks(std::move(layout));
  return placed;
}

Problem small_stand_in(const Problem& problem, const Selection& selection, std::uint64_t seed) {
  Problem small = problem;
  if (problem.pattern.distinct_heads(problem.heads) == 1) {
    keep_heads(&small, problem.heads / problem.kv_heads);
    small.kv_heads = 1;
  }
  return stand_in(small, selection, seed);
}

}  // namespace annulus::autotune
