#include "pattern/interval.h"

#include <algorithm>

namespace annulus::pattern {
namespace {

// The first interval that ends behind a number.
IntervalSet::const_iterator first_behind(const IntervalSet& set, std::int64_t number) {
  return std::upper_bound(
      set.begin(), set.end(), number,
      [](std::int64_t value, const Interval& interval) { return value < interval.end; });
}

}  // namespace

void intersect(const IntervalSet& a, const IntervalSet& b, IntervalSet* out) {
  out->clear();
  for (auto x = a.begin(), y = b.begin(); x != a.end() && y != b.end();) {
    append(out, intersection(*x, *y));
    // The one that ends first meets nothing further.
    if (x->end < y->end) {
      ++x;
    } else {
      ++y;
    }
  }
}

void unite(const IntervalSet& a, const IntervalSet& b, IntervalSet* out) {
  if (a.empty() || b.empty()) {
    *out = a.empty() ? b : a;
    return;
  }
  out->clear();
  for (auto x = a.begin(), y = b.begin(); x != a.end() || y != b.end();) {
    const bool take_a = y == b.end() || (x != a.end() && x->begin <= y->begin);
    append(out, take_a ? *x++ : *y++);
  }
}

void subtract(const IntervalSet& a, const IntervalSet& b, IntervalSet* out) {
  if (b.empty()) {
    *out = a;
    return;
  }
  out->clear();
  auto cut = b.begin();
  for (const Interval& whole : a) {
    std::int64_t begin = whole.begin;
    while (cut != b.end() && cut->end <= begin) ++cut;
    // A cut may reach into the next interval of a, so only whole ones are passed here.
    for (auto next = cut; next != b.end() && next->begin < whole.end; ++next) {
      append(out, {begin, next->begin});
      begin = std::max(begin, next->end);
      cut = next;
    }
    append(out, {begin, whole.end});
  }
}

void complement(const IntervalSet& a, Interval universe, IntervalSet* out) {
  out->clear();
  std::int64_t begin = universe.begin;
  for (const Interval& hole : a) {
    append(out, intersection({begin, hole.begin}, universe));
    begin = std::max(begin, hole.end);
  }
  append(out, intersection({begin, universe.end}, universe));
}

std::int64_t size(const IntervalSet& set) {
  std::int64_t total = 0;
  for (const Interval& interval : set) total += interval.size();
  return total;
}

bool touches(const IntervalSet& set, Interval interval) {
  const auto found = first_behind(set, interval.begin);
  return !interval.empty() && found != set.end() && found->begin < interval.end;
}

bool covers(const IntervalSet& set, Interval interval) {
  if (interval.empty()) return true;
  const auto found = first_behind(set, interval.begin);
  return found != set.end() && found->begin <= interval.begin && interval.end <= found->end;
}

}  // namespace annulus::pattern
