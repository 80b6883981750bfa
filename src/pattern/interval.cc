#include "pattern/interval.h"

#include <algorithm>
#include <utility>

namespace annulus::pattern {
namespace {

// The first interval that ends after a number.
IntervalSet::const_iterator first_behind(const IntervalSet& set, std::int64_t number) {
  return std::upper_bound(
      set.begin(), set.end(), number,
      [](std::int64_t value, const Interval& interval) { return value < interval.end; });
}

// The rest of a set while two sets are merged. Sets are often similar, or one of them is short. So
// runs of intervals that the other set does not cut are found by steps of growing length, and
// copied together.
struct Rest {
  explicit Rest(const IntervalSet& set) : at(set.data()), end(set.data() + set.size()) {}
  bool empty() const { return at == end; }

  // Requires: is_before(*at). Advances to the first interval for which it is false.
  template <typename IsBefore>
  void skip_while(const IsBefore& is_before) {
    std::ptrdiff_t step = 1;
    for (; step < end - at && is_before(at[step]); step *= 2) at += step;
    at = std::partition_point(at + 1, at + std::min(step, end - at), is_before);
  }
  template <typename IsBefore>
  void take_while(const IsBefore& is_before, IntervalSet* out) {
    const Interval* first = at;
    skip_while(is_before);
    out->insert(out->end(), first, at);
  }

  const Interval* at;
  const Interval* end;
};

}  // namespace

void intersect(const IntervalSet& a, const IntervalSet& b, IntervalSet* out) {
  out->clear();
  Rest x(a), y(b);
  while (!x.empty() && !y.empty()) {
    if (x.at->end > y.at->end) std::swap(x, y);
    if (x.at->begin >= y.at->begin) {  // x is inside y, and so may be the intervals after it
      x.take_while([&](const Interval& i) { return i.end <= y.at->end; }, out);
      continue;
    }
    if (x.at->end <= y.at->begin) {
      x.skip_while([&](const Interval& i) { return i.end <= y.at->begin; });
      continue;
    }
    out->push_back({y.at->begin, x.at->end});
    ++x.at;
  }
}

void unite(const IntervalSet& a, const IntervalSet& b, IntervalSet* out) {
  if (a.empty() || b.empty()) {
    *out = a.empty() ? b : a;
    return;
  }
  out->clear();
  Rest x(a), y(b);
  while (!x.empty() && !y.empty()) {
    if (x.at->begin > y.at->begin) std::swap(x, y);
    append(out, *x.at++);
    if (x.empty() || x.at->begin <= out->back().end || x.at->end >= y.at->begin) continue;
    x.take_while([&](const Interval& i) { return i.end < y.at->begin; }, out);
  }
  if (x.empty()) std::swap(x, y);
  while (!x.empty() && x.at->begin <= out->back().end) append(out, *x.at++);
  out->insert(out->end(), x.at, x.end);
}

void subtract(const IntervalSet& a, const IntervalSet& b, IntervalSet* out) {
  out->clear();
  Rest x(a), cut(b);
  while (!x.empty() && !cut.empty()) {
    if (*x.at == *cut.at) {
      ++x.at;
      ++cut.at;
    } else if (x.at->end <= cut.at->begin) {
      x.take_while([&](const Interval& i) { return i.end <= cut.at->begin; }, out);
    } else if (cut.at->end <= x.at->begin) {
      cut.skip_while([&](const Interval& i) { return i.end <= x.at->begin; });
    } else {
      std::int64_t begin = x.at->begin;
      while (!cut.empty() && cut.at->begin < x.at->end) {
        if (begin < cut.at->begin) out->push_back({begin, cut.at->begin});
        begin = cut.at->end;
        // A subtracted interval that ends after this one may also cut the next one of a, so it is
        // kept.
        if (begin > x.at->end) break;
        ++cut.at;
      }
      if (begin < x.at->end) out->push_back({begin, x.at->end});
      ++x.at;
    }
  }
  out->insert(out->end(), x.at, x.end);
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
