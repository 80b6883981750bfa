#include "attention/score/score.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "attention/score/score_node.h"
#include "base/fail.h"

namespace annulus::attention {
namespace {

constexpr std::size_t kMaxBias = std::size_t{1} << 28;  // entries of all tables: 1 GB

// The bound is 1e20: times a distance of up to 2^31, and summed, such values stay far inside the
// range of fp32.
void check_values(const char* name, const std::vector<double>& values) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (std::abs(values[i]) <= 1e20) continue;  // also true for NaN
    base::fail(ErrorCode::kInvalidArgument, "{}: entry {} is {}; it must be within +-1e20", name, i,
               values[i]);
  }
}

void check_lists(const char* name, std::size_t lists, std::int64_t heads) {
  if (lists <= static_cast<std::size_t>(heads)) return;
  base::fail(ErrorCode::kInvalidArgument,
             "{} has {} entries, but the problem {} heads; give one for each, or fewer that repeat",
             name, lists, heads);
}

std::vector<float> times(double factor, const std::vector<double>& values) {
  std::vector<float> result;
  result.reserve(values.size());
  for (const double value : values) {
    result.push_back(static_cast<float>(value * factor));
  }
  return result;
}

}  // namespace

// Numbers must be finite, and within bounds that keep fp32 scores finite. A soft-cap c is a factor
// in fp32 and has a lower bound too, so that it stays above the smallest normal number. The other
// factor, scale / c, is clamped by score_numbers() (in kernel_source.cc).
void check_score(const Problem& problem) {
  const Score& score = problem.score;
  const double scale = problem.effective_scale();
  if (!std::isfinite(scale)) {
    base::fail(ErrorCode::kInvalidArgument, "scale is {}; give a finite number", scale);
  }
  if (std::abs(scale) > 1e20) {
    base::fail(ErrorCode::kInvalidArgument, "scale is {}, beyond what fp32 scores can hold (1e20)",
               scale);
  }
  if (!std::isfinite(score.softcap) || score.softcap < 0 ||
      (score.softcap > 0 && (score.softcap < 1e-30 || score.softcap > 1e30))) {
    base::fail(ErrorCode::kInvalidArgument,
               "softcap is {}; give a number from 1e-30 to 1e30, or 0 for none", score.softcap);
  }
  check_values("alibi", score.alibi);
  check_lists("alibi", score.alibi.size(), problem.heads);
  check_values("sink_logit", score.sink_logit);
  check_lists("sink_logit", score.sink_logit.size(), problem.heads);
  check_lists("bias", score.bias.size(), problem.heads);
  for (std::size_t i = 0; i < score.bias.size(); ++i) {
    const std::size_t length = score.bias[i].size();
    if (length % 2 == 0 || length != score.bias[0].size() ||
        length > kMaxBias / score.bias.size()) {
      base::fail(ErrorCode::kInvalidArgument,
                 "bias: table {} has {} entries; tables have 2 n + 1 of them, all the same number "
                 "as the first ({}), and at most 2^28 together",
                 i, length, score.bias[0].size());
    }
    check_values("bias", score.bias[i]);
  }
  if (score.score_mod && score.score_mod->node().type == ScoreNode::Type::kTruth) {
    base::fail(ErrorCode::kInvalidArgument,
               "score_mod '{}' is a comparison, but the score must be a number; write "
               "where(..., score, -inf) for a mask",
               score.score_mod->to_string().substr(0, 64));
  }
}

double position_terms(const Score& score, std::int64_t head, std::int64_t distance) {
  double added = 0;
  if (!score.alibi.empty()) added += of_head(score.alibi, head) * static_cast<double>(distance);
  if (!score.bias.empty()) {
    const std::vector<double>& table = of_head(score.bias, head);
    const auto reach = static_cast<std::int64_t>(table.size() / 2);
    added += table[static_cast<std::size_t>(std::clamp(-distance, -reach, reach) + reach)];
  }
  return added;
}

ScoreTables score_tables(const Score& score) {
  ScoreTables tables;
  const double base = score.score_mod ? 1.0 : std::numbers::log2e;
  tables.slopes = times(base, score.alibi);
  tables.sinks = times(std::numbers::log2e, score.sink_logit);
  for (const std::vector<double>& table : score.bias) {
    const std::vector<float> values = times(base, table);
    tables.bias.insert(tables.bias.end(), values.begin(), values.end());
    tables.bias_reach = static_cast<std::int64_t>(table.size() / 2);
  }
  return tables;
}

}  // namespace annulus::attention
