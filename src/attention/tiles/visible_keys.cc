#include "attention/tiles/visible_keys.h"

#include "attention/tiles/planes.h"
#include "pattern/visible_hull.h"

namespace annulus::attention {

pattern::Interval visible_keys(const Problem& problem, const pattern::Placement& placement) {
  pattern::Interval keys;
  Planes(problem).each_pattern([&](const Pattern& pattern, std::int64_t head) {
    keys = pattern::visible_hull(pattern, head, placement, keys);
  });
  return keys;
}

}  // namespace annulus::attention
