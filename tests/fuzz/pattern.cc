// Patterns. An input is text up to the first zero byte, which is parsed as it is. If its first byte
// is above 127, a grammar turns the bytes into text instead, so that most of such inputs are
// patterns. The bytes after the text are lengths, positions and block sizes.
//
// A pattern that parses must print as text that parses to the same pattern. Its rows, blocks and
// pairs must agree with the definition, Pattern::visible.

#include <algorithm>
#include <string>
#include <vector>

#include "annulus/layout.h"
#include "annulus/pattern.h"
#include "base/work.h"
#include "fuzz/fuzz.h"
#include "fuzz/pattern_grammar.h"
#include "pattern/classify.h"
#include "pattern/node.h"

namespace annulus::fuzz {
namespace {

using pattern::BlockRun;
using pattern::Bounds;
using pattern::Classifier;
using pattern::Extent;
using pattern::Interval;

// The lengths and positions with which a pattern is tested.
struct Question {
  Extent extent;
  PatternContext context;
  std::int64_t head = 0;
  std::int64_t block_rows = 1, block_columns = 1;
  std::int64_t grain = 0;
};

// The lengths are so small that every pair can be tested, and the positions reach the limits.
Question question_of(Bytes& bytes) {
  Question question;
  const std::int64_t seq_q = bytes.between(0, 24);
  const std::int64_t seq_k = bytes.between(0, 32);
  question.extent = Extent::whole(seq_q, seq_k);
  question.context.batch = bytes.below(5);
  question.head = bytes.below(9);
  question.block_rows = bytes.between(1, 12);
  question.block_columns = bytes.between(1, 12);
  question.grain = bytes.below(20);
  question.context.seq_k = seq_k + bytes.below(16);
  if (bytes.below(3) == 0) {
    question.extent.q_position = bytes.number();
    question.extent.k_position = bytes.below(4) == 0 ? bytes.number() : bytes.between(-40, 40);
    question.context.layer = bytes.number();
  }
  return question;
}

bool has(const pattern::IntervalSet& set, std::int64_t key) {
  return std::any_of(set.begin(), set.end(), [&](const Interval& interval) {
    return interval.begin <= key && key < interval.end;
  });
}

// All pairs of an extent by the definition, computed row by row.
class Pairs {
 public:
  Pairs(const Pattern& pattern, const Question& question)
      : columns_(question.extent.seq_k),
        seen_(static_cast<std::size_t>(question.extent.seq_q * question.extent.seq_k)) {
    const Extent& extent = question.extent;
    for (std::int64_t i = 0; i < extent.seq_q; ++i) {
      for (std::int64_t j = 0; j < extent.seq_k; ++j) {
        seen_[static_cast<std::size_t>(i * columns_ + j)] = pattern.visible(
            question.head, extent.q_position + i, extent.k_position + j, question.context);
      }
    }
  }
  bool seen(std::int64_t i, std::int64_t j) const {
    return seen_[static_cast<std::size_t>(i * columns_ + j)] != 0;
  }
  std::int64_t count() const { return std::count(seen_.begin(), seen_.end(), 1); }
  // Returns 0, 1 or 2 if no, some or all pairs of rows [top, bottom) and columns [left, right) are
  // visible.
  int class_of(std::int64_t top, std::int64_t bottom, std::int64_t left, std::int64_t right) const {
    bool any = false, all = true;
    for (std::int64_t i = top; i < bottom; ++i) {
      for (std::int64_t j = left; j < right; ++j) (seen(i, j) ? any : all) = seen(i, j);
    }
    return any ? (all ? 2 : 1) : 0;
  }

 private:
  std::int64_t columns_;
  std::vector<std::uint8_t> seen_;
};

void check_rows(const Pattern& pattern, const Question& question, const Pairs& pairs) {
  const Extent& extent = question.extent;
  pattern::Evaluator evaluator(pattern, question.context);
  for (std::int64_t i = 0; i < extent.seq_q; ++i) {
    const auto& keys = evaluator.row(question.head, extent.q_position + i, extent.keys());
    for (std::int64_t j = 0; j < extent.seq_k; ++j) {
      if (has(keys, extent.k_position + j) == pairs.seen(i, j)) continue;
      wrong("row: {} head {} q {} k {}", pattern.to_string(), question.head, extent.q_position + i,
            extent.k_position + j);
    }
  }
  if (extent.seq_q == 0) return;
  const Bounds& bounds =
      evaluator.range(question.head, extent.queries(), extent.keys(), question.grain);
  for (std::int64_t j = 0; j < extent.seq_k; ++j) {
    const std::int64_t k = extent.k_position + j;
    const int exact = pairs.class_of(0, extent.seq_q, j, j + 1);
    const bool all = has(bounds.all, k), any = has(bounds.any, k), doubt = has(bounds.doubt, k);
    const bool right = doubt ? any && !all : exact == (all ? 2 : any ? 1 : 0);
    if (!right) wrong("range: {} head {} k {}", pattern.to_string(), question.head, k);
  }
}

void check_blocks(const Pattern& pattern, const Question& question, const Pairs& pairs) {
  const Extent& extent = question.extent;
  const std::int64_t high = question.block_rows, wide = question.block_columns;
  Classifier classifier(pattern, pattern::Placement::of(extent, question.context), high, wide);
  for (std::int64_t row = 0; row < classifier.rows(); ++row) {
    std::vector<int> found(static_cast<std::size_t>(classifier.columns()), 0);
    for (const BlockRun& run : classifier.row(question.head, row)) {
      for (std::int64_t column = run.begin; column < run.end; ++column) {
        found[static_cast<std::size_t>(column)] = run.partial ? 1 : 2;
      }
    }
    for (std::int64_t column = 0; column < classifier.columns(); ++column) {
      const int exact = pairs.class_of(row * high, std::min(row * high + high, extent.seq_q),
                                       column * wide, std::min(column * wide + wide, extent.seq_k));
      if (found[static_cast<std::size_t>(column)] == exact) continue;
      wrong("block: {} head {} row {} column {}: {}, not {}", pattern.to_string(), question.head,
            row, column, found[static_cast<std::size_t>(column)], exact);
    }
  }
  const std::int64_t counted =
      pattern::visible_pairs(pattern, question.head, extent, question.context);
  if (counted != pairs.count()) {
    wrong("pairs: {} head {}: {}, not {}", pattern.to_string(), question.head, counted,
          pairs.count());
  }
}

void check(std::string_view text, Bytes& bytes) {
  const base::Work work(WorkLimit{}, "fuzzing");
  const Pattern pattern = Pattern::parse(text, {.allow_files = false});
  const std::string printed = pattern.to_string();
  if (!(Pattern::parse(printed, {.allow_files = false}) == pattern)) {
    wrong("text: {} prints as {}", text, printed);
  }
  Question question = question_of(bytes);
  // A tree with many leaves takes long for each pair.
  if (pattern.node().leaves > 64) {
    question.extent = Extent::whole(question.extent.seq_q % 7, question.extent.seq_k % 9);
  }
  pattern::check_extent(question.extent);
  const Pairs pairs(pattern, question);
  check_rows(pattern, question, pairs);
  check_blocks(pattern, question, pairs);
}

}  // namespace
}  // namespace annulus::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace annulus::fuzz;
  Bytes bytes(data, size);
  annulus::fuzz::refusal_of([&] {
    if (size > 0 && data[0] > 127) {
      bytes.byte();
      const std::string text = PatternGrammar(&bytes).pattern();
      return check(text, bytes);
    }
    const std::string_view all = bytes.rest();
    const std::string_view text = all.substr(0, all.find('\0'));
    Bytes behind(all.substr(std::min(all.size(), text.size() + 1)));
    check(text, behind);
  });
  return 0;
}
