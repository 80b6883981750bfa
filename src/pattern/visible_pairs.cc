// Counts the visible pairs of a pattern. Rows that continue in the same way are counted together,
// other rows by intervals or stripes, and never pair by pair.

#include <algorithm>

#include "base/fail.h"
#include "base/math.h"
#include "pattern/classify.h"
#include "pattern/node.h"
#include "pattern/rows_alike.h"
#include "pattern/striped.h"

namespace annulus::pattern {
namespace {

// The number of rows that are counted together if rows do not continue in the same way for longer.
// It is large enough that patterns whose rows agree cost next to nothing, and small enough that the
// rows differ in few keys.
constexpr std::int64_t kRowsTogether = 64;

class Counter {
 public:
  Counter(const Pattern& pattern, std::int64_t head, const Extent& extent,
          const PatternContext& context)
      : extent_(extent),
        head_(head),
        evaluator_(pattern, context),
        striped_(pattern, context),
        alike_(evaluator_.pattern().node()) {}

  std::int64_t run() {
    const Interval all = extent_.queries();
    for (Interval rows = all; !rows.empty();) {
      const std::int64_t alike = std::min(alike_.from(rows.begin, extent_.keys()), rows.size());
      const bool few = alike < kRowsTogether;
      const std::int64_t count = few ? std::min(kRowsTogether, rows.size()) : alike;
      const Interval next = {rows.begin, rows.begin + count};
      few ? add_few(next) : add_progression(next);
      rows.begin = next.end;
    }
    return static_cast<std::int64_t>(total_);
  }

 private:
  __extension__ using Wide = __int128;

  // Adds the sum of an arithmetic progression, n (first + last) / 2.
  void add_progression(Interval rows) {
    const Wide first = size(evaluator_.row(head_, rows.begin, extent_.keys()));
    const Wide last = size(evaluator_.row(head_, rows.end - 1, extent_.keys()));
    add(rows.size() * (first + last) / 2);
  }

  // Adds a few rows. Keys on which all the rows agree are counted once for all of them, other keys
  // row by row.
  void add_few(Interval rows) {
    const Bounds& bounds = evaluator_.range(head_, rows, extent_.keys(), kRowsTogether);
    add(Wide{rows.size()} * size(bounds.all));
    subtract(bounds.any, bounds.all, &differ_);
    if (differ_.empty()) return;
    const Interval hull = {differ_.front().begin, differ_.back().end};
    intersect(bounds.all, {hull}, &agreed_);
    add(-Wide{rows.size()} * size(agreed_));
    for (std::int64_t row = rows.begin; row < rows.end; ++row) {
      add(striped_.count(head_, row, hull));
    }
  }

  void add(Wide pairs) {
    total_ += pairs;
    if (total_ > INT64_MAX) {
      base::fail(ErrorCode::kInvalidArgument, "Sq {} x Sk {} has more pairs than 2^63",
                 extent_.seq_q, extent_.seq_k);
    }
  }

  Extent extent_;
  std::int64_t head_;
  Evaluator evaluator_;
  StripedCounter striped_;
  RowsAlike alike_;
  IntervalSet differ_, agreed_;
  Wide total_ = 0;
};

}  // namespace

std::int64_t visible_pairs(const Pattern& pattern, std::int64_t head, const Extent& extent,
                           const PatternContext& context) {
  check_extent(extent);
  return Counter(pattern, head, extent, context).run();
}

Density density(const Pattern& pattern, const Extent& extent, std::int64_t heads,
                const PatternContext& context) {
  const std::int64_t distinct = distinct_heads(pattern.node(), heads);
  double visible = 0;
  for (std::int64_t head = 0; head < distinct; ++head) {
    const std::int64_t like_it = base::ceil_div(heads - head, distinct);
    visible += static_cast<double>(like_it) *
               static_cast<double>(visible_pairs(pattern, head, extent, context));
  }
  const double all = static_cast<double>(extent.seq_q) * static_cast<double>(extent.seq_k) *
                     static_cast<double>(heads);
  return {all > 0 ? visible / all : 0.0};
}

}  // namespace annulus::pattern
