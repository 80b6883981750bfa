#include "pattern/visible_hull.h"

#include <algorithm>
#include <optional>

namespace annulus::pattern {
namespace {

enum class Side { kFirst, kLast };

// The number of queries and keys of the first step of a search, and the factor by which each
// further step is larger.
constexpr std::int64_t kQueries = 64;
constexpr std::int64_t kKeys = 256;
constexpr std::int64_t kGrowth = 4;

// Finds the first key that queries see, or the last one. Side is the side from which queries and
// keys are searched.
template <Side kSide>
class Search {
 public:
  Search(const Pattern& pattern, const PatternContext& context, std::int64_t head)
      : evaluator_(pattern, context), head_(head) {}

  // The key nearest to the side, of the keys of the universe that any of the queries sees.
  std::optional<std::int64_t> find(Interval queries, Interval universe) {
    for (std::int64_t count = kKeys; !universe.empty(); count *= kGrowth) {
      if (const auto key = among_keys(queries, take(count, &universe))) return key;
    }
    return std::nullopt;
  }

 private:
  // Cuts off up to `count` numbers from the side.
  static Interval take(std::int64_t count, Interval* from) {
    Interval taken = *from;
    if (kSide == Side::kLast) {
      taken.begin = from->end = std::max(from->begin, from->end - count);
    } else {
      taken.end = from->begin = std::min(from->end, from->begin + count);
    }
    return taken;
  }
  // The keys that are nearer to the side than `key`.
  static Interval nearer(std::int64_t key, Interval keys) {
    return kSide == Side::kLast ? Interval{key + 1, keys.end} : Interval{keys.begin, key};
  }

  // Searches the queries from the same side first, because in most patterns they see the key.
  std::optional<std::int64_t> among_keys(Interval queries, Interval keys) {
    std::optional<std::int64_t> found;
    for (std::int64_t count = kQueries; !queries.empty() && !keys.empty(); count *= kGrowth) {
      const auto key = among(take(count, &queries), keys);
      if (!key) continue;
      found = key;
      keys = nearer(*key, keys);
    }
    return found;
  }

  // Requires: neither is empty.
  std::optional<std::int64_t> among(Interval queries, Interval keys) {
    const Bounds& bounds = evaluator_.range(head_, queries, keys);
    if (bounds.any.empty()) return std::nullopt;
    const std::int64_t key =
        kSide == Side::kLast ? bounds.any.back().end - 1 : bounds.any.front().begin;
    if (queries.size() == 1 || !touches(bounds.doubt, {key, key + 1})) return key;
    Interval far = queries;
    const Interval near = take(queries.size() / 2, &far);
    const auto found = among(near, keys);
    if (found) keys = nearer(*found, keys);
    if (keys.empty()) return found;
    const auto better = among(far, keys);
    return better ? better : found;
  }

  Evaluator evaluator_;
  std::int64_t head_;
};

// Extends `hull`, in rows of K, to the first key or the last key that is seen.
template <Side kSide>
void extend(const Pattern& pattern, std::int64_t head, const Placement& placement, Interval* hull) {
  constexpr bool kIsLast = kSide == Side::kLast;
  Search<kSide> search(pattern, placement.context, head);
  const auto& segments = placement.k;
  const std::size_t count = segments.size();
  std::int64_t passed = 0;  // rows of the segments that the search has passed
  const std::int64_t total = total_length(segments);
  for (std::size_t i = 0; i < count; ++i) {
    const Segment& keys = segments[kIsLast ? count - 1 - i : i];
    const std::int64_t first = kIsLast ? total - passed - keys.length : passed;
    passed += keys.length;
    // The part of the segment beyond the hull, as positions.
    Interval universe = {keys.start, keys.start + keys.length};
    const std::int64_t shift = first - keys.start;
    if (!hull->empty()) {
      if (kIsLast) universe.begin = std::max(universe.begin, hull->end - shift);
      if (!kIsLast) universe.end = std::min(universe.end, hull->begin - shift);
    }
    std::optional<std::int64_t> row;
    for (std::size_t j = 0; j < placement.q.size() && !universe.empty(); ++j) {
      const Segment& queries = placement.q[kIsLast ? placement.q.size() - 1 - j : j];
      const auto key = search.find({queries.start, queries.start + queries.length}, universe);
      if (!key) continue;
      row = *key + shift;
      if (kIsLast) universe.begin = *key + 1;
      if (!kIsLast) universe.end = *key;
    }
    if (!row) continue;
    if (hull->empty()) *hull = {*row, *row + 1};
    if (kIsLast) hull->end = *row + 1;
    if (!kIsLast) hull->begin = *row;
    return;
  }
}

}  // namespace

Interval visible_hull(const Pattern& pattern, std::int64_t head, const Placement& placement,
                      Interval hull) {
  extend<Side::kLast>(pattern, head, placement, &hull);
  if (!hull.empty()) extend<Side::kFirst>(pattern, head, placement, &hull);
  return hull;
}

}  // namespace annulus::pattern
