#ifndef ANNULUS_PATTERN_INTERVAL_H_
#define ANNULUS_PATTERN_INTERVAL_H_

// Sets of whole numbers as sorted lists of intervals. The keys that a query sees are stored in this
// form.

#include <cstdint>
#include <vector>

namespace annulus::pattern {

// The numbers in [begin, end); empty if end <= begin.
struct Interval {
  std::int64_t begin = 0;
  std::int64_t end = 0;

  bool empty() const { return end <= begin; }
  std::int64_t size() const { return empty() ? 0 : end - begin; }
  friend bool operator==(const Interval&, const Interval&) = default;
};

inline Interval intersection(const Interval& a, const Interval& b) {
  return {a.begin > b.begin ? a.begin : b.begin, a.end < b.end ? a.end : b.end};
}

// Intervals ascend, none is empty, and there is a gap between any two.
using IntervalSet = std::vector<Interval>;

// Adds an interval that begins at or after the last one's begin. An empty interval is dropped, and
// an interval that touches the last one is joined with it.
inline void append(IntervalSet* set, Interval interval) {
  if (interval.empty()) return;
  if (!set->empty() && interval.begin <= set->back().end) {
    if (set->back().end < interval.end) set->back().end = interval.end;
  } else {
    set->push_back(interval);
  }
}

// The results replace *out, which must not be one of the operands.
void intersect(const IntervalSet& a, const IntervalSet& b, IntervalSet* out);
void unite(const IntervalSet& a, const IntervalSet& b, IntervalSet* out);
void subtract(const IntervalSet& a, const IntervalSet& b, IntervalSet* out);
void complement(const IntervalSet& a, Interval universe, IntervalSet* out);

std::int64_t size(const IntervalSet& set);                // the number of numbers in the set
bool touches(const IntervalSet& set, Interval interval);  // whether both have a number in common
// Whether the set contains the whole interval.
bool covers(const IntervalSet& set, Interval interval);

}  // namespace annulus::pattern

#endif  // ANNULUS_PATTERN_INTERVAL_H_
