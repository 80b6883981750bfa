#include "selection/reference.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <numeric>

#include "selection/reference_scores.h"
#include "selection/selection_plan.h"

namespace annulus::selection {
namespace {

// Maps a score to an integer with the same order, in which -0 is below +0, as select_blocks.cu
// does.
std::uint32_t order_of(float score) {
  const auto bits = std::bit_cast<std::uint32_t>(score);
  return bits >> 31 ? ~bits : bits | 0x80000000u;
}

// One row of blocks, from which blocks are being chosen.
struct Row {
  const float* scores;  // masses instead of scores if the row has several parts
  const std::uint8_t* candidate;
  const std::uint8_t* forced;
  std::uint8_t* chosen;
  std::int64_t columns;
  std::int64_t parts;  // rows of cells that exist
  bool masses;
};

// Takes forced blocks first and then the best blocks, until the rule has enough. Masses are whole
// multiples of 2^-24, so their sums do not depend on the order.
void choose(const Selection& selection, const Row& row) {
  std::vector<std::int64_t> order;
  float peak = std::numeric_limits<float>::lowest();
  for (std::int64_t j = 0; j < row.columns; ++j) {
    if (!row.candidate[j]) continue;
    order.push_back(j);
    peak = larger(peak, row.scores[j]);
  }
  const auto mass = [&](std::int64_t j) {
    const float unit = 16777216.0f;
    return static_cast<std::uint64_t>(row.masses
                                          ? row.scores[j] * (unit / static_cast<float>(row.parts))
                                          : exact_exp2(row.scores[j] - peak) * unit);
  };
  std::stable_sort(order.begin(), order.end(), [&](std::int64_t a, std::int64_t b) {
    if (row.forced[a] != row.forced[b]) return row.forced[a] > row.forced[b];
    return order_of(row.scores[a]) > order_of(row.scores[b]);
  });
  const bool by_mass = selection.rule == SelectionRule::kTopP && mass_target(selection) < kMassUnit;
  std::uint64_t target = 0;
  if (by_mass) {
    for (const std::int64_t j : order) target += mass(j);
    target = wanted_mass(target, mass_target(selection));
  }
  std::int64_t count = 0;
  std::uint64_t taken = 0;
  for (const std::int64_t j : order) {
    // Forced blocks come first in `order`, so the row ends at the first block that is not needed.
    const bool enough =
        (selection.max_blocks > 0 && count >= selection.max_blocks) || (by_mass && taken >= target);
    if (enough && !row.forced[j]) break;
    row.chosen[j] = 1;
    ++count;
    taken += mass(j);
  }
}

// Whether the pattern shows any pair of the block. Every pair is evaluated.
bool any_visible(const Problem& problem, const Selection& selection, std::int64_t head,
                 std::int64_t row, std::int64_t column) {
  PatternContext context = problem.context();
  context.batch = 0;  // all batches see what the first one sees (validate)
  const std::int64_t row_end = std::min((row + 1) * selection.block_rows, problem.seq_q);
  const std::int64_t column_end = std::min((column + 1) * selection.block_columns, problem.seq_k);
  for (std::int64_t i = row * selection.block_rows; i < row_end; ++i) {
    for (std::int64_t j = column * selection.block_columns; j < column_end; ++j) {
      if (problem.pattern.visible(head, problem.q_position() + i, problem.k_position() + j,
                                  context)) {
        return true;
      }
    }
  }
  return false;
}

// Whether a row always keeps a block: it is a sink block, it holds a position of the row, or it is
// one of the diagonal_blocks - 1 blocks to the left of such a block.
bool is_forced(const Problem& problem, const Selection& selection, std::int64_t row,
               std::int64_t column) {
  if (column < selection.sink_blocks) return true;
  if (selection.diagonal_blocks == 0) return false;
  const std::int64_t first = problem.q_position() + row * selection.block_rows;
  const std::int64_t last =
      problem.q_position() + std::min((row + 1) * selection.block_rows, problem.seq_q) - 1;
  const std::int64_t begin = problem.k_position() + column * selection.block_columns;
  const std::int64_t end = begin + selection.block_columns;
  const std::int64_t left = (selection.diagonal_blocks - 1) * selection.block_columns;
  return begin <= last && end + left > first;
}

// Scores the blocks and chooses among the candidates, for all heads of all batches.
void take(const Problem& problem, const Selection& selection, const HostInputs& inputs,
          const std::vector<std::uint8_t>& candidate, const std::vector<std::uint8_t>& forced,
          HostBlocks* blocks) {
  blocks->scores.assign(blocks->chosen.size(), 0.0f);
  for (std::int64_t list = 0; list < problem.batch * problem.heads; ++list) {
    const std::int64_t b = list / problem.heads;
    const std::int64_t head = list % problem.heads;
    const ListScores of_list(problem, selection, inputs, b, head);
    for (std::int64_t row = 0; row < blocks->rows; ++row) {
      const std::size_t line = blocks->at(b, head, row, 0);
      const std::vector<float> scores = of_list.row(row, candidate.data() + line);
      std::copy(scores.begin(), scores.end(), blocks->scores.data() + line);
      choose(selection, {scores.data(), candidate.data() + line, forced.data() + line,
                         blocks->chosen.data() + line, blocks->columns, of_list.parts_of(row),
                         of_list.are_masses()});
    }
  }
}

// The arrays of a result in which no block is visible or chosen yet.
HostBlocks no_blocks(const Problem& problem, const Selection& selection) {
  HostBlocks blocks;
  blocks.batch = problem.batch;
  blocks.heads = problem.heads;
  blocks.rows = selection.rows(problem.seq_q);
  blocks.columns = selection.columns(problem.seq_k);
  const std::size_t count = blocks.at(blocks.batch, 0, 0, 0);
  blocks.visible.assign(count, 0);
  blocks.chosen.assign(count, 0);
  return blocks;
}

// The blocks that a coarse pass keeps. A coarse block is visible, or forced, if one of the fine
// blocks inside it is.
HostBlocks choose_coarse(const Problem& problem, const Selection& selection,
                         const HostInputs& inputs, const HostBlocks& fine,
                         const std::vector<std::uint8_t>& fine_forced) {
  const std::int64_t factor = selection.coarse_factor;
  const Selection own = coarse_selection(selection);
  HostBlocks coarse = no_blocks(problem, own);
  std::vector<std::uint8_t> forced(coarse.chosen.size(), 0);
  for (std::size_t i = 0; i < fine.visible.size(); ++i) {
    const auto index = static_cast<std::int64_t>(i);
    const std::size_t at =
        coarse.at(0, index / fine.columns / fine.rows, index / fine.columns % fine.rows / factor,
                  index % fine.columns / factor);
    coarse.visible[at] |= fine.visible[i];
    forced[at] |= fine_forced[i];
  }
  take(problem, own, inputs, coarse.visible, forced, &coarse);
  return coarse;
}

}  // namespace

double HostBlocks::share() const {
  const auto kept = std::accumulate(chosen.begin(), chosen.end(), std::int64_t{0});
  const auto all = std::accumulate(visible.begin(), visible.end(), std::int64_t{0});
  return all > 0 ? static_cast<double>(kept) / static_cast<double>(all) : 0.0;
}

HostBlocks reference(const Problem& problem, const Selection& selection, const HostInputs& inputs,
                     const std::int32_t* given) {
  HostBlocks blocks = no_blocks(problem, selection);
  const std::size_t count = blocks.chosen.size();
  std::vector<std::uint8_t> forced(count, 0);
  const std::int64_t distinct = problem.pattern.distinct_heads(problem.heads);
  for (std::size_t at = 0; at < count; ++at) {
    const auto index = static_cast<std::int64_t>(at);
    const std::int64_t column = index % blocks.columns;
    const std::int64_t row = index / blocks.columns % blocks.rows;
    const std::int64_t head = index / blocks.columns / blocks.rows % blocks.heads;
    // Visibility does not depend on the batch, and head h sees what head h mod `distinct` sees. So
    // the pattern is evaluated only for the first heads of batch 0, and all other heads copy from
    // them.
    blocks.visible[at] = at >= blocks.at(0, distinct, 0, 0)
                             ? blocks.visible[blocks.at(0, head % distinct, row, column)]
                             : any_visible(problem, selection, head, row, column);
    forced[at] = blocks.visible[at] && is_forced(problem, selection, row, column);
  }
  if (selection.rule == SelectionRule::kGiven) {
    // Entries of `given` that name no visible block of the row are skipped.
    blocks.chosen = forced;
    for (std::size_t i = 0;
         blocks.columns > 0 && i < count / static_cast<std::size_t>(blocks.columns) *
                                       static_cast<std::size_t>(selection.max_blocks);
         ++i) {
      const std::int32_t column = given[i];
      if (column < 0 || column >= blocks.columns) continue;
      const std::size_t line = i / static_cast<std::size_t>(selection.max_blocks);
      const std::size_t at =
          line * static_cast<std::size_t>(blocks.columns) + static_cast<std::size_t>(column);
      if (blocks.visible[at]) blocks.chosen[at] = 1;
    }
    return blocks;
  }

  // The blocks from which a row may choose. With a coarse pass these are the visible blocks inside
  // the chosen coarse blocks.
  std::vector<std::uint8_t> candidate = blocks.visible;
  if (selection.coarse_factor > 0) {
    const std::int64_t factor = selection.coarse_factor;
    const HostBlocks coarse = choose_coarse(problem, selection, inputs, blocks, forced);
    for (std::size_t at = 0; at < count; ++at) {
      const auto index = static_cast<std::int64_t>(at);
      const std::int64_t list = index / blocks.columns / blocks.rows;
      candidate[at] &= coarse.chosen[coarse.at(
          0, list, index / blocks.columns % blocks.rows / factor, index % blocks.columns / factor)];
    }
  }
  take(problem, selection, inputs, candidate, forced, &blocks);
  return blocks;
}

BlockLayout layout_of(const Problem& problem, const Selection& selection, const HostBlocks& blocks,
                      std::int64_t batch) {
  BlockLayout layout = empty_layout(problem, selection);
  layout.indptr = {0};
  for (std::int64_t head = 0; head < blocks.heads; ++head) {
    for (std::int64_t row = 0; row < blocks.rows; ++row) {
      for (std::int64_t column = 0; column < blocks.columns; ++column) {
        if (blocks.chosen[blocks.at(batch, head, row, column)]) {
          layout.indices.push_back(static_cast<std::int32_t>(column));
        }
      }
      layout.indptr.push_back(static_cast<std::int64_t>(layout.indices.size()));
    }
  }
  return layout;
}

}  // namespace annulus::selection
