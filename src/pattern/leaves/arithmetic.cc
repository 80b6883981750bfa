#include "pattern/leaves/arithmetic.h"

#include "base/work.h"

namespace annulus::pattern::leaves {

void append_listed(const std::vector<std::int64_t>& list, Interval universe, IntervalSet* out) {
  for (auto at = std::lower_bound(list.begin(), list.end(), universe.begin);
       at != list.end() && *at < universe.end; ++at) {
    append(out, {*at, *at + 1});
  }
}

void append_comb(Rows blocks, std::int64_t stride, std::int64_t low, std::int64_t high,
                 std::int64_t b, Interval universe, IntervalSet* out) {
  if (universe.empty()) return;
  const Rows there = rows_of(universe, b);
  low = std::max(low, -floor_div(blocks.last - there.first, stride));
  high = std::min(high, floor_div(there.last - blocks.first, stride));
  base::charge(std::max<std::int64_t>(0, high - low) / 2);
  for (std::int64_t t = low; t <= high; ++t) {
    add(out, universe,
        {product(blocks.first + t * stride, b), product(blocks.last + t * stride + 1, b)});
  }
}

}  // namespace annulus::pattern::leaves
