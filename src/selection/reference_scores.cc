#include "selection/reference_scores.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "attention/tiles/tile_list.h"
#include "attention/tiles/visible_keys.h"
#include "base/half.h"
#include "base/math.h"
#include "selection/selection_plan.h"

namespace annulus::selection {
namespace {

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
  constexpr float kLargest = std::numeric_limits<float>::max();
  if (!(score >= -kLargest)) return -kLargest;  // NaN becomes the lowest score too
  return std::min(score, kLargest);
}

float dot(const std::vector<float>& a, const std::vector<float>& b) {
  float sum = 0;
  for (std::size_t d = 0; d < a.size(); ++d) sum = std::fma(a[d], b[d], sum);
  return sum;
}

// Adds values in the order of a warp: lane l adds the values at l, l + 32, ..., and then a tree
// adds the sums of the lanes.
float warp_sum(const std::vector<float>& values) {
  float lanes[32] = {};
  for (std::size_t i = 0; i < values.size(); ++i) lanes[i % 32] += values[i];
  for (int width = 16; width > 0; width /= 2) {
    for (int lane = 0; lane < width; ++lane) lanes[lane] += lanes[lane + width];
  }
  return lanes[0];
}

// The mass of each cell: each row of cells has a softmax over the candidates. `logs` is
// [parts][columns].
std::vector<float> masses_of(const std::vector<std::vector<float>>& logs,
                             const std::uint8_t* candidate) {
  const std::size_t columns = logs.front().size();
  std::vector<float> masses(columns);
  for (const std::vector<float>& part : logs) {
    float peak = std::numeric_limits<float>::lowest();
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

HostRows rows_of(const void* data, const Strides& strides, std::int64_t b, std::int64_t head,
                 const pattern::Interval& rows, const Problem& problem) {
  return {static_cast<const std::uint16_t*>(data) + b * strides.batch + head * strides.head,
          strides.row, rows, problem.dim_qk, problem.dtype};
}

}  // namespace

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

float larger(float a, float b) {
  if (std::isnan(a)) return b;
  if (std::isnan(b)) return a;
  if (a == b) return std::signbit(a) ? b : a;
  return a > b ? a : b;
}

float HostRows::element(std::int64_t row, std::int64_t d) const {
  return row >= rows.begin && row < rows.end ? base::to_float(dtype, data[row * stride + d]) : 0.0f;
}

std::vector<float> HostRows::pooled(std::int64_t first, std::int64_t block, Pool pool) const {
  const auto [begin, end] = intersection(rows, {first, first + block});
  std::vector<float> vector(static_cast<std::size_t>(dim));
  if (begin >= end) return vector;
  for (std::int64_t d = 0; d < dim; ++d) {
    float& to = vector[static_cast<std::size_t>(d)];
    if (pool == Pool::kMax) {
      to = element(begin, d);
      for (std::int64_t row = begin + 1; row < end; ++row) to = larger(to, element(row, d));
    } else {
      for (std::int64_t row = begin; row < end; ++row) to += element(row, d);
      to /= static_cast<float>(end - begin);
    }
  }
  return vector;
}

ListScores::ListScores(const Problem& problem, const Selection& selection, const HostInputs& inputs,
                       std::int64_t b, std::int64_t head)
    : problem_(problem),
      selection_(selection),
      q_(rows_of(inputs.q, inputs.q_strides, b, head, {0, problem.seq_q}, problem)),
      k_(rows_of(inputs.k, inputs.k_strides, b, head / (problem.heads / problem.kv_heads),
                 attention::visible_keys(problem, attention::placement_of(problem)), problem)) {
  if (selection.pool == Pool::kAntidiagonal) {
    parts_ = selection.block_rows / selection.stride;
    return;
  }
  for (std::int64_t begin = 0; begin < problem.seq_k; begin += selection.block_columns) {
    keys_.push_back(k_.pooled(begin, selection.block_columns, selection.pool));
  }
}

std::int64_t ListScores::parts_of(std::int64_t row) const {
  if (parts_ == 1) return 1;
  const std::int64_t cells = base::ceil_div(problem_.seq_q, selection_.stride);
  return std::min(parts_, cells - row * parts_);
}

std::vector<float> ListScores::row(std::int64_t row, const std::uint8_t* candidate) const {
  if (selection_.pool != Pool::kAntidiagonal) {
    const std::vector<float> query =
        q_.pooled(row * selection_.block_rows, selection_.block_rows, selection_.pool);
    std::vector<float> scores;
    for (const std::vector<float>& key : keys_) {
      scores.push_back(finite(dot(query, key) * base_two_scale(problem_)));
    }
    return scores;
  }
  std::vector<std::vector<float>> logs;
  for (std::int64_t part = 0; part < parts_of(row); ++part) {
    logs.push_back(cell_logs(row * parts_ + part));
  }
  return are_masses() ? masses_of(logs, candidate) : logs.front();
}

// log2 of the sum of exp2 of the cells' scores, for one row of cells and each block of columns.
std::vector<float> ListScores::cell_logs(std::int64_t cell_row) const {
  const std::int64_t stride = selection_.stride;
  const float scale = base_two_scale(problem_) / static_cast<float>(stride);
  std::vector<float> logs;
  for (std::int64_t first = 0; first < problem_.seq_k; first += selection_.block_columns) {
    std::vector<float> cells;
    for (std::int64_t begin = first; begin < first + selection_.block_columns; begin += stride) {
      if (intersection(k_.rows, {begin, begin + stride}).empty()) continue;
      float sum = 0;
      for (std::int64_t s = 0; s < stride; ++s) {
        const std::int64_t i = cell_row * stride + stride - 1 - s;
        for (std::int64_t d = 0; d < problem_.dim_qk; ++d) {
          sum = std::fma(q_.element(i, d), k_.element(begin + s, d), sum);
        }
      }
      cells.push_back(finite(sum * scale));
    }
    if (cells.empty()) {  // there is no candidate
      logs.push_back(0);
      continue;
    }
    float peak = cells.front();
    for (const float cell : cells) peak = larger(peak, cell);
    float sum = 0;
    for (const float cell : cells) sum += exact_exp2(cell - peak);
    logs.push_back(finite(peak + exact_log2(sum)));
  }
  return logs;
}

}  // namespace annulus::selection
