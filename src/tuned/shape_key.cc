#include "tuned/shape_key.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "attention/kernels/kernel_source.h"
#include "attention/run/branched_forward.h"
#include "attention/tiles/tile_list.h"
#include "pattern/batches.h"
#include "pattern/classify.h"

namespace annulus::tuned {
namespace {

constexpr std::int64_t kDensityBlock = 128;

int half_octaves(std::int64_t length) {
  return static_cast<int>(
      std::lround(2 * std::log2(static_cast<double>(std::max<std::int64_t>(length, 1)))));
}

int half_halvings(double density) {
  if (!(density > 0)) return kNoBlocks;
  return std::min(kNoBlocks - 1, static_cast<int>(std::lround(-2 * std::log2(density))));
}

PatternClass pattern_class(const Pattern& pattern, const std::string& mask) {
  if (pattern == dense()) return PatternClass::kDense;
  if (pattern == causal()) return PatternClass::kCausal;
  return attention::evaluated_in_loop(mask) ? PatternClass::kLists : PatternClass::kPositions;
}

ExpressionClass expression_class(const attention::ScoreStructure& structure) {
  if (!structure.present()) return ExpressionClass::kNone;
  if (!structure.costly) return ExpressionClass::kShort;
  return structure.is_long ? ExpressionClass::kLong : ExpressionClass::kLoop;
}

}  // namespace

const char* to_string(ExpressionClass expression) {
  switch (expression) {
    case ExpressionClass::kNone:
      return "none";
    case ExpressionClass::kShort:
      return "short";
    case ExpressionClass::kLoop:
      return "loop";
    case ExpressionClass::kLong:
      return "long";
  }
  return "unknown expression";
}

const char* to_string(PatternClass pattern) {
  switch (pattern) {
    case PatternClass::kDense:
      return "dense";
    case PatternClass::kCausal:
      return "causal";
    case PatternClass::kPositions:
      return "positions";
    case PatternClass::kLists:
      return "lists";
    case PatternClass::kChosen:
      return "chosen blocks";
  }
  return "unknown pattern";
}

const char* to_string(Requests requests) {
  switch (requests) {
    case Requests::kNone:
      return "no requests";
    case Requests::kFewQueries:
      return "few queries";
    case Requests::kManyQueries:
      return "many queries";
  }
  return "unknown requests";
}

const char* to_string(kernels::Score score) {
  switch (score) {
    case kernels::Score::kPositiveScale:
      return "positive_scale";
    case kernels::Score::kAnyScale:
      return "any_scale";
    case kernels::Score::kSoftcap:
      return "softcap";
  }
  return "unknown score";
}

std::int64_t blocks_of_row(const Selection& selection) {
  constexpr std::int64_t kGuessed = 16;
  const std::int64_t kept = selection.sink_blocks + selection.diagonal_blocks;
  if (selection.rule == SelectionRule::kGiven) return selection.max_blocks + kept;
  return std::max(selection.max_blocks > 0 ? selection.max_blocks : kGuessed, kept);
}

namespace {

// All parts of the key except the density.
ShapeKey without_density(const Problem& problem, const std::vector<Problem>& branches) {
  ShapeKey key;
  for (const Problem& branch : branches) {
    const attention::KernelFeatures features = attention::features_of(branch);
    key.score = features.score;
    key.expression = expression_class(features.score_mod);
    key.pattern = std::max(key.pattern, pattern_class(branch.pattern, features.mask));
  }
  key.branches = static_cast<int>(branches.size());
  key.dim_qk = static_cast<int>(problem.dim_qk);
  key.dim_v = static_cast<int>(problem.dim_v);
  key.dtype = problem.dtype;
  key.group = static_cast<int>(problem.heads / problem.kv_heads);
  key.carry_in = problem.carry_in;
  key.carry_out = problem.carry_out;
  key.queries = half_octaves(problem.seq_q);
  key.keys = half_octaves(problem.seq_k);
  const double heads = static_cast<double>(problem.batch) * static_cast<double>(problem.heads);
  key.heads = static_cast<int>(std::lround(std::log2(std::max(heads, 1.0))));
  return key;
}

// The share of the blocks that rows may keep. It is computed from some evenly spaced rows, because
// the key stores it in steps of half a power of two. Classifying all rows would take half of the
// time of making a plan.
double chosen_density(const Problem& problem, const Selection& selection) {
  // the number of rows of all heads together, if there are few rows
  constexpr std::int64_t kRows = 128;
  constexpr std::int64_t kLeastRows = 4;  // the least number of rows of each head
  pattern::Classifier classifier(pattern::for_batches(problem.pattern, problem.batch),
                                 attention::placement_of(problem), selection.block_rows,
                                 selection.block_columns);
  const std::int64_t heads = problem.pattern.distinct_heads(problem.heads);
  const std::int64_t rows = std::min(classifier.rows(), std::max(kLeastRows, kRows / heads));
  const std::int64_t most = blocks_of_row(selection);
  double kept = 0;
  for (std::int64_t head = 0; head < heads; ++head) {
    for (std::int64_t i = 0; i < rows; ++i) {
      const std::int64_t row = (2 * i + 1) * classifier.rows() / (2 * rows);
      std::int64_t seen = 0;
      for (const pattern::BlockRun& run : classifier.row(head, row)) seen += run.end - run.begin;
      kept += static_cast<double>(std::min(seen, most));
    }
  }
  const double all = static_cast<double>(heads) * static_cast<double>(rows) *
                     static_cast<double>(classifier.columns());
  return all > 0 ? kept / all : 0;
}

}  // namespace

ShapeKey shape_key(const Problem& problem) {
  const std::vector<Problem> branches = attention::branch_problems(problem);
  ShapeKey key = without_density(problem, branches);
  double density = 0;
  for (const Problem& branch : branches) {
    density += attention::block_density(branch, kDensityBlock, kDensityBlock).value;
  }
  key.density = half_halvings(density / static_cast<double>(branches.size()));
  return key;
}

ShapeKey shape_key(const Problem& problem, const Selection& selection) {
  ShapeKey key = without_density(problem, {problem});  // the blocks of a sum cannot be chosen
  key.pattern = PatternClass::kChosen;
  key.block_rows = static_cast<int>(selection.block_rows);
  key.block_columns = static_cast<int>(selection.block_columns);
  key.density = half_halvings(chosen_density(problem, selection));
  return key;
}

namespace {

// For example "chosen blocks of 128 x 128", or only the class.
std::string class_text(const ShapeKey& key) {
  std::string text = to_string(key.pattern);
  if (key.pattern != PatternClass::kChosen) return text;
  return text + fmt::format(" of {} x {}", key.block_rows, key.block_columns);
}

// Empty, or for example "requests of few queries, pages of a multiple of 16, blocks of 64 keys".
std::string requests_text(const ShapeKey& key) {
  if (key.requests == Requests::kNone) return {};
  std::string text = fmt::format("requests of {}", to_string(key.requests));
  if (key.pages == kernels::Pages::kAny) text += ", pages of any size";
  if (static_cast<int>(key.pages) > 1) {
    text += fmt::format(", pages of a multiple of {}", static_cast<int>(key.pages));
  }
  if (key.block_columns > 0) text += fmt::format(", blocks of {} keys", key.block_columns);
  return text;
}

// Everything except lengths, heads and group.
std::string kind_with(const ShapeKey& key, const std::string& density) {
  std::string text = key.dim_qk == key.dim_v ? fmt::format("D{}", key.dim_qk)
                                             : fmt::format("D{}/{}", key.dim_qk, key.dim_v);
  const std::string requests = requests_text(key);
  text += fmt::format(
      " {}, {}{}{}{}{}", to_string(key.dtype), requests, requests.empty() ? "" : ", ",
      key.branches > 1 ? fmt::format("sum of {}, ", key.branches) : "", class_text(key), density);
  if (key.score == kernels::Score::kAnyScale) text += ", any scale";
  if (key.score == kernels::Score::kSoftcap) text += ", softcap";
  if (key.expression != ExpressionClass::kNone) {
    text += fmt::format(", {} expression", to_string(key.expression));
  }
  if (key.carry_in) text += ", carried in";
  if (key.carry_out) text += ", carried out";
  return text;
}

// For example "862 to 1217": the numbers n whose round(steps * log2 n) is `step`. Only one number,
// such as "1", if there is just one.
std::string range_text(int step, double steps) {
  const auto bound = [&](double at) { return std::exp2(std::min(at / steps, 62.0)); };
  const auto least =
      std::max<std::int64_t>(1, static_cast<std::int64_t>(std::ceil(bound(step - 0.5))));
  const auto most = static_cast<std::int64_t>(std::floor(bound(step + 0.5)));
  if (least > most) return "none";  // no whole number is rounded to this step
  return least == most ? std::to_string(least) : fmt::format("{} to {}", least, most);
}

// The density is at most 1, although the step 0 would include larger values.
std::string density_text(const ShapeKey& key) {
  if (key.density == kNoBlocks) return "no block";
  return fmt::format("{:.2g} to {:.2g} of the blocks", std::exp2(-0.5 * key.density - 0.25),
                     std::min(1.0, std::exp2(-0.5 * key.density + 0.25)));
}

}  // namespace

std::string to_string(const ShapeKey& key) {
  return fmt::format("{}, group {}, queries {}, keys {}, heads {}",
                     kind_with(key, ", " + density_text(key)), key.group,
                     range_text(key.queries, 2), range_text(key.keys, 2), range_text(key.heads, 1));
}

std::string kind_text(const ShapeKey& key) {
  std::string density;
  if (key.density == kNoBlocks) {
    density = ", no block";
  } else if (key.density > 0) {
    density = fmt::format(", about {:.2g} of the blocks", std::exp2(-0.5 * key.density));
  }
  return kind_with(key, density);
}

std::string why_other_kind(const ShapeKey& stated, const ShapeKey& wanted) {
  std::string text;
  const auto compare = [&](const std::string& theirs, const std::string& ours) {
    if (theirs != ours) text += fmt::format("{}{}, not {}", text.empty() ? "" : "; ", theirs, ours);
  };
  const auto dims = [](const ShapeKey& key) {
    return fmt::format("head dims {}/{}", key.dim_qk, key.dim_v);
  };
  const auto carried = [](const ShapeKey& key) {
    return fmt::format("carried {}", key.carry_in    ? (key.carry_out ? "in and out" : "in")
                                     : key.carry_out ? "out"
                                                     : "nowhere");
  };
  const auto branches = [](const ShapeKey& key) {
    return key.branches > 1 ? fmt::format("a sum of {}", key.branches)
                            : "a pattern that is not a sum";
  };
  const auto group = [](const ShapeKey& key) { return fmt::format("group {}", key.group); };
  const auto heads = [](const ShapeKey& key) { return "heads " + range_text(key.heads, 1); };
  const auto expression = [](const ShapeKey& key) {
    return fmt::format("expression {}", to_string(key.expression));
  };
  const auto requests = [](const ShapeKey& key) {
    return key.requests == Requests::kNone ? "a problem" : requests_text(key);
  };
  compare(requests(stated), requests(wanted));
  compare(dims(stated), dims(wanted));
  compare(to_string(stated.dtype), to_string(wanted.dtype));
  compare(group(stated), group(wanted));
  compare(heads(stated), heads(wanted));
  compare(branches(stated), branches(wanted));
  compare(class_text(stated), class_text(wanted));
  compare(density_text(stated), density_text(wanted));
  compare(to_string(stated.score), to_string(wanted.score));
  compare(expression(stated), expression(wanted));
  compare(carried(stated), carried(wanted));
  return text;
}

base::Digest digest(const ShapeKey& key) {
  std::string text = fmt::format(
      "dims {}/{}, {}, group {}, {}, {}, carried {} {}, {}, density {}, queries {}, keys {}, "
      "heads {}",
      key.dim_qk, key.dim_v, to_string(key.dtype), key.group, to_string(key.score),
      to_string(key.expression), key.carry_in, key.carry_out, to_string(key.pattern), key.density,
      key.queries, key.keys, key.heads);
  if (key.branches > 1) text += fmt::format(", sum of {}", key.branches);
  if (key.pattern == PatternClass::kChosen) {
    text += fmt::format(", {} x {}", key.block_rows, key.block_columns);
  }
  if (key.requests != Requests::kNone) {
    text += fmt::format(", {}, pages {}, blocks of {}", to_string(key.requests),
                        static_cast<int>(key.pages), key.block_columns);
  }
  return base::digest(text);
}

std::optional<int> length_distance(const ShapeKey& a, const ShapeKey& b) {
  ShapeKey moved = a;
  moved.queries = b.queries;
  moved.keys = b.keys;
  if (moved != b) return std::nullopt;
  return std::abs(a.queries - b.queries) + std::abs(a.keys - b.keys);
}

}  // namespace annulus::tuned
