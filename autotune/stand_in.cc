#include "autotune/stand_in.h"

#include <algorithm>
#include <span>
#include <utility>
#include <vector>

#include "attention/tiles/tile_list.h"
#include "autotune/parts.h"
#include "base/math.h"
#include "base/random.h"
#include "pattern/batches.h"
#include "pattern/classify.h"
#include "tuned/shape_key.h"

namespace annulus::autotune {
namespace {

// Draws the blocks of one row, ascending. They are the first and the last blocks that the row sees,
// as many as a run always keeps, and random others up to the row's limit. The others are drawn by
// Floyd's algorithm, whose time depends on the number drawn and not on the number available.
void draw_row(std::span<const pattern::BlockRun> seen, const Selection& selection,
              base::Random& random, std::vector<std::int32_t>* to) {
  std::int64_t count = 0;
  for (const pattern::BlockRun& run : seen) count += run.end - run.begin;
  const std::int64_t most = std::min(count, tuned::blocks_of_row(selection));
  const std::int64_t first = std::min(most, selection.sink_blocks);
  const std::int64_t last = std::min(most - first, selection.diagonal_blocks);
  std::vector<std::int64_t> places;  // indices among the blocks that the row sees
  for (std::int64_t at = 0; at < first; ++at) places.push_back(at);
  for (std::int64_t at = count - last; at < count; ++at) places.push_back(at);
  std::vector<bool> drawn(static_cast<std::size_t>(count));
  for (std::int64_t end = count - (most - first); end < count - last; ++end) {
    const std::int64_t any = first + random.below(static_cast<std::uint32_t>(end - first + 1));
    const std::int64_t at = drawn[static_cast<std::size_t>(any)] ? end : any;
    drawn[static_cast<std::size_t>(at)] = true;
    places.push_back(at);
  }
  std::ranges::sort(places);
  auto run = seen.begin();
  std::int64_t before = 0;  // the number of blocks in the runs before this one
  for (const std::int64_t at : places) {
    for (; at >= before + run->end - run->begin; ++run) before += run->end - run->begin;
    to->push_back(static_cast<std::int32_t>(run->begin + at - before));
  }
}

// The number of heads that differ: up to sixteen, and a multiple of the number of heads whose
// patterns differ. It is smaller if their rows may have many blocks.
std::int64_t heads_of_layout(const Problem& problem, const Selection& selection) {
  constexpr std::int64_t kMost = 16;
  constexpr std::int64_t kBlocks = 1 << 24;  // the most blocks of all heads together
  const std::int64_t distinct = problem.pattern.distinct_heads(problem.heads);
  const double of_each = static_cast<double>(distinct) *
                         static_cast<double>(selection.rows(problem.seq_q)) *
                         static_cast<double>(std::min(tuned::blocks_of_row(selection),
                                                      selection.columns(problem.seq_k)));
  const double times = std::clamp(static_cast<double>(kBlocks) / std::max(of_each, 1.0), 1.0,
                                  static_cast<double>(base::ceil_div(kMost, distinct)));
  return std::min(problem.heads, static_cast<std::int64_t>(times) * distinct);
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
  layout.heads = heads_of_layout(problem, selection);
  for (std::int64_t head = 0; head < problem.heads; ++head) {
    layout.head_map.push_back(static_cast<std::int32_t>(head % layout.heads));
  }
  layout.indptr = {0};
  base::Random random(seed);
  // All batches see the same keys, because other selections are refused.
  pattern::Classifier classifier(pattern::for_batches(placed.pattern, placed.batch),
                                 attention::placement_of(placed), selection.block_rows,
                                 selection.block_columns);
  for (std::int64_t head = 0; head < layout.heads; ++head) {
    for (std::int64_t row = 0; row < classifier.rows(); ++row) {
      draw_row(classifier.row(head % distinct, row), selection, random, &layout.indices);
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
