#include "selection/reference.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <numeric>

#include "base/half.h"
#include "selection/selection_plan.h"

namespace annulus::selection {
namespace {

constexpr float kLargest = std::numeric_limits<float>::max();

// templates/tile/exact_math.cuh, operation by operation.
float exact_exp2(float x) {
  if (!(x >= -125.0f)) return 0.0f;
  const float whole = std::nearbyint(x);
  const float f = x - whole;
  float power = 1.5403530e-4f;
  for (const float coefficient :
       {1.3333558e-3f, 9.6181291e-3f, 5.5504109e-2f, 2.4022651e-1f, 6.9314718e-1f, 1.0f}) {
    power = std::fma(power, f, coefficient);
  }
  return std::bit_cast<float>(std::bit_cast<std::int32_t>(power) +
                              (static_cast<std::int32_t>(whole) << 23));
}

float exact_log2(float x) {
  const std::int32_t shifted = std::bit_cast<std::int32_t>(x) - 0x3f400000;
  const auto m = std::bit_cast<float>((shifted & 0x7fffff) + 0x3f400000);
  const float s = (m - 1.0f) / (m + 1.0f);
  float sum = 0.32059890f;
  for (const float coefficient : {0.41219858f, 0.57707802f, 0.96179669f, 2.8853900f}) {
    sum = std::fma(sum, s * s, coefficient);
  }
  return std::fma(sum, s, static_cast<float>(shifted >> 23));
}

float finite(float score) {
  if (!(score >= -kLargest)) return -kLargest;  // NaN too
  return std::min(score, kLargest);
}

// What fmaxf is on a device: a number rather than NaN, and zeros in order.
float larger(float a, float b) {
  if (std::isnan(a)) return b;
  if (std::isnan(b)) return a;
  if (a == b) return std::signbit(a) ? b : a;
  return a > b ? a : b;
}

struct HostRows {
  const std::uint16_t* data;
  const Strides& strides;
  std::int64_t rows;
  std::int64_t dim;
  Dtype dtype;

  float element(std::int64_t b, std::int64_t head, std::int64_t row, std::int64_t d) const {
    return base::to_float(dtype,
                          data[b * strides.batch + head * strides.head + row * strides.row + d]);
  }
  // The vector of the rows [begin, begin + block), as far as they exist.
  std::vector<float> pooled(std::int64_t b, std::int64_t head, std::int64_t begin,
                            std::int64_t block, Pool pool) const {
    const std::int64_t end = std::min(begin + block, rows);
    std::vector<float> vector(static_cast<std::size_t>(dim));
    for (std::int64_t d = 0; d < dim; ++d) {
      float& to = vector[static_cast<std::size_t>(d)];
      if (pool == Pool::kMax) {
        to = element(b, head, begin, d);
        for (std::int64_t row = begin + 1; row < end; ++row) {
          to = larger(to, element(b, head, row, d));
        }
      } else {
        for (std::int64_t row = begin; row < end; ++row) to += element(b, head, row, d);
        to /= static_cast<float>(end - begin);
      }
    }
    return vector;
  }
};

float dot(const std::vector<float>& a, const std::vector<float>& b) {
  float sum = 0;
  for (std::size_t d = 0; d < a.size(); ++d) sum = std::fma(a[d], b[d], sum);
  return sum;
}

// Of one row of cells: the logarithm of the sum of the cells' powers, for each block of columns.
std::vector<float> cell_logs(const Problem& problem, const Selection& selection, const HostRows& q,
                             const HostRows& k, std::int64_t b, std::int64_t head,
                             std::int64_t cell_row) {
  const std::int64_t stride = selection.stride;
  const std::int64_t kv_head = head / (problem.heads / problem.kv_heads);
  const float scale = base_two_scale(problem) / static_cast<float>(stride);
  std::vector<float> logs;
  for (std::int64_t first = 0; first < problem.seq_k; first += selection.block_columns) {
    const std::int64_t end = std::min(first + selection.block_columns, problem.seq_k);
    std::vector<float> cells;
    for (std::int64_t begin = first; begin < end; begin += stride) {
      float sum = 0;
      for (std::int64_t s = 0; s < stride; ++s) {
        const std::int64_t i = cell_row * stride + stride - 1 - s;
        const std::int64_t j = begin + s;
        for (std::int64_t d = 0; d < problem.dim_qk; ++d) {
          const float of_q = i < problem.seq_q ? q.element(b, head, i, d) : 0.0f;
          const float of_k = j < problem.seq_k ? k.element(b, kv_head, j, d) : 0.0f;
          sum = std::fma(of_q, of_k, sum);
        }
      }
      cells.push_back(finite(sum * scale));
    }
    float peak = cells.front();
    for (const float cell : cells) peak = larger(peak, cell);
    float sum = 0;
    for (const float cell : cells) sum += exact_exp2(cell - peak);
    logs.push_back(finite(peak + exact_log2(sum)));
  }
  return logs;
}

// The order of the keys, in which -0 lies below +0.
std::uint32_t order_of(float score) {
  const auto bits = std::bit_cast<std::uint32_t>(score);
  return bits >> 31 ? ~bits : bits | 0x80000000u;
}

// One row while blocks are taken from it.
struct Row {
  const float* scores;  // or masses, where the row has several parts
  const std::uint8_t* candidate;
  const std::uint8_t* forced;
  std::uint8_t* chosen;
  std::int64_t columns;
  std::int64_t parts;  // that exist
  bool masses;
};

void choose(const Selection& selection, const Row& row) {
  std::vector<std::int64_t> order;
  float peak = -kLargest;
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
  const bool by_mass = selection.rule == SelectionRule::kTopP && selection.mass < 1;
  std::uint64_t target = 0;
  if (by_mass) {
    for (const std::int64_t j : order) target += mass(j);
    target = (target * mass_target(selection) + (1u << 20) - 1) >> 20;
  }
  std::int64_t count = 0;
  std::uint64_t taken = 0;
  for (const std::int64_t j : order) {
    const bool enough = (selection.most_blocks > 0 && count >= selection.most_blocks) ||
                        (by_mass && taken >= target);
    if (enough && !row.forced[j]) break;
    row.chosen[j] = 1;
    ++count;
    taken += mass(j);
  }
}

// The sum of a warp's lanes, lane l having the sum of the values at l, l + 32, ...
float warp_sum(const std::vector<float>& values) {
  float lanes[32] = {};
  for (std::size_t i = 0; i < values.size(); ++i) lanes[i % 32] += values[i];
  for (int width = 16; width > 0; width /= 2) {
    for (int lane = 0; lane < width; ++lane) lanes[lane] += lanes[lane + width];
  }
  return lanes[0];
}

// Shares of the cells: each row of cells has a softmax over the candidates. `logs` is
// [parts][columns].
std::vector<float> masses_of(const std::vector<std::vector<float>>& logs,
                             const std::uint8_t* candidate) {
  const std::size_t columns = logs.front().size();
  std::vector<float> masses(columns);
  for (const std::vector<float>& part : logs) {
    float peak = -kLargest;
    for (std::size_t j = 0; j < columns; ++j) {
      if (candidate[j]) peak = larger(peak, part[j]);
    }
    std::vector<float> powers(columns);
    for (std::size_t j = 0; j < columns; ++j) {
      if (candidate[j]) powers[j] = exact_exp2(part[j] - peak);
    }
    const float sum = warp_sum(powers);
    for (std::size_t j = 0; j < columns; ++j) {
      if (candidate[j]) masses[j] += powers[j] / sum;
    }
  }
  return masses;
}

// A block is visible where the pattern shows one of its pairs.
bool any_visible(const Problem& problem, const Selection& selection, std::int64_t head,
                 std::int64_t row, std::int64_t column) {
  const PatternContext context = problem.context();
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

// The diagonal blocks of a row are those with a position of the row, and some to their left.
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

// Scores and takes blocks, all lists one after another.
void take(const Problem& problem, const Selection& selection, const attention::HostInputs& inputs,
          const std::vector<std::uint8_t>& candidate, const std::vector<std::uint8_t>& forced,
          HostBlocks* blocks) {
  const HostRows q = {static_cast<const std::uint16_t*>(inputs.q), inputs.q_strides, problem.seq_q,
                      problem.dim_qk, problem.dtype};
  const HostRows k = {static_cast<const std::uint16_t*>(inputs.k), inputs.k_strides, problem.seq_k,
                      problem.dim_qk, problem.dtype};
  const std::int64_t parts =
      selection.pool == Pool::kAntidiagonal ? selection.block_rows / selection.stride : 1;
  for (std::int64_t list = 0; list < problem.batch * problem.heads; ++list) {
    const std::int64_t b = list / problem.heads;
    const std::int64_t head = list % problem.heads;
    const std::int64_t kv_head = head / (problem.heads / problem.kv_heads);
    std::vector<std::vector<float>> keys;
    for (std::int64_t column = 0; column < blocks->columns && selection.pool != Pool::kAntidiagonal;
         ++column) {
      keys.push_back(k.pooled(b, kv_head, column * selection.block_columns, selection.block_columns,
                              selection.pool));
    }
    for (std::int64_t row = 0; row < blocks->rows; ++row) {
      const std::size_t line = blocks->at(b, head, row, 0);
      float* const scores = blocks->scores.data() + line;
      std::int64_t exist = 1;
      if (selection.pool == Pool::kAntidiagonal) {
        const std::int64_t cells = (problem.seq_q + selection.stride - 1) / selection.stride;
        exist = std::min(parts, cells - row * parts);
        std::vector<std::vector<float>> logs;
        for (std::int64_t part = 0; part < exist; ++part) {
          logs.push_back(cell_logs(problem, selection, q, k, b, head, row * parts + part));
        }
        const std::vector<float> values =
            parts == 1 ? logs.front() : masses_of(logs, candidate.data() + line);
        std::copy(values.begin(), values.end(), scores);
      } else {
        const std::vector<float> query =
            q.pooled(b, head, row * selection.block_rows, selection.block_rows, selection.pool);
        for (std::int64_t column = 0; column < blocks->columns; ++column) {
          scores[column] =
              finite(dot(query, keys[static_cast<std::size_t>(column)]) * base_two_scale(problem));
        }
      }
      choose(selection, {scores, candidate.data() + line, forced.data() + line,
                         blocks->chosen.data() + line, blocks->columns, exist, parts > 1});
    }
  }
}

// The blocks that a coarse pass keeps; a coarse block is visible or forced where one inside is.
HostBlocks choose_coarse(const Problem& problem, const Selection& selection,
                         const attention::HostInputs& inputs, const HostBlocks& fine,
                         const std::vector<std::uint8_t>& fine_forced) {
  const std::int64_t factor = selection.coarse_factor;
  Selection own = coarse_selection(selection);
  HostBlocks coarse;
  coarse.batch = fine.batch;
  coarse.heads = fine.heads;
  coarse.rows = own.rows(problem.seq_q);
  coarse.columns = own.columns(problem.seq_k);
  const std::size_t count = coarse.at(coarse.batch, 0, 0, 0);
  coarse.visible.assign(count, 0);
  coarse.chosen.assign(count, 0);
  coarse.scores.assign(count, 0.0f);
  std::vector<std::uint8_t> forced(count, 0);
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

HostBlocks reference(const Problem& problem, const Selection& selection,
                     const attention::HostInputs& inputs, const std::int32_t* given) {
  HostBlocks blocks;
  blocks.batch = problem.batch;
  blocks.heads = problem.heads;
  blocks.rows = selection.rows(problem.seq_q);
  blocks.columns = selection.columns(problem.seq_k);
  const std::size_t count = blocks.at(problem.batch, 0, 0, 0);
  blocks.visible.assign(count, 0);
  blocks.chosen.assign(count, 0);
  std::vector<std::uint8_t> forced(count, 0);
  const std::int64_t distinct = problem.pattern.distinct_heads(problem.heads);
  for (std::size_t at = 0; at < count; ++at) {
    const auto index = static_cast<std::int64_t>(at);
    const std::int64_t column = index % blocks.columns;
    const std::int64_t row = index / blocks.columns % blocks.rows;
    const std::int64_t head = index / blocks.columns / blocks.rows % blocks.heads;
    blocks.visible[at] = at >= blocks.at(0, distinct, 0, 0)
                             ? blocks.visible[blocks.at(0, head % distinct, row, column)]
                             : any_visible(problem, selection, head, row, column);
    forced[at] = blocks.visible[at] && is_forced(problem, selection, row, column);
  }
  if (selection.rule == SelectionRule::kGiven) {
    blocks.chosen = forced;
    for (std::size_t i = 0;
         blocks.columns > 0 && i < count / static_cast<std::size_t>(blocks.columns) *
                                       static_cast<std::size_t>(selection.most_blocks);
         ++i) {
      const std::int32_t column = given[i];
      if (column < 0 || column >= blocks.columns) continue;
      const std::size_t line = i / static_cast<std::size_t>(selection.most_blocks);
      const std::size_t at =
          line * static_cast<std::size_t>(blocks.columns) + static_cast<std::size_t>(column);
      if (blocks.visible[at]) blocks.chosen[at] = 1;
    }
    return blocks;
  }

  // What a row may choose from: with a coarse pass not all that it sees.
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
  blocks.scores.assign(count, 0.0f);
  take(problem, selection, inputs, candidate, forced, &blocks);
  return blocks;
}

BlockLayout layout_of(const Problem& problem, const Selection& selection, const HostBlocks& blocks,
                      std::int64_t batch) {
  BlockLayout layout;
  layout.block_rows = selection.block_rows;
  layout.block_columns = selection.block_columns;
  layout.seq_q = problem.seq_q;
  layout.seq_k = problem.seq_k;
  layout.heads = problem.heads;
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
