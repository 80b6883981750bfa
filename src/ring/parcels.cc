#include "ring/parcels.h"

#include <algorithm>
#include <bit>
#include <map>
#include <numeric>
#include <tuple>
#include <utility>

#include "base/work.h"

namespace annulus::ring {
namespace {

using pattern::Interval;
using pattern::IntervalSet;

// The takers of a row, one bit for each.
using Wanted = std::vector<std::uint64_t>;

// If there are more groups than this, they stay in the order of their first rows, because sorting
// compares all pairs of groups.
constexpr std::size_t kMaxCompared = 128;

// Adjacent rows that have the same takers.
struct Atom {
  Interval rows;
  std::size_t group = 0;
};

class RowOrder {
 public:
  explicit RowOrder(std::span<const IntervalSet* const> takers) {
    // Takers of the same rows count as one taker with a weight of their number.
    std::map<IntervalSet, std::int64_t, Less> distinct;
    for (const IntervalSet* taker : takers) {
      base::charge(2 + std::ssize(*taker));
      if (!taker->empty()) ++distinct[*taker];
    }
    for (const auto& [rows, times] : distinct) {
      weights_.push_back(times);
      all_weights_ += times;
    }
    cut(distinct);
  }

  std::vector<Interval> pieces() const {
    std::vector<std::size_t> shard_order(atoms_.size());
    std::iota(shard_order.begin(), shard_order.end(), std::size_t{0});
    if (ranges(shard_order) == all_weights_) return pieces(shard_order);
    const std::vector<std::size_t> grouped = group_order();
    return pieces(ranges(grouped) < ranges(shard_order) ? grouped : shard_order);
  }

 private:
  struct Less {
    bool operator()(const IntervalSet& a, const IntervalSet& b) const {
      return std::ranges::lexicographical_compare(a, b, [](const Interval& x, const Interval& y) {
        return std::pair(x.begin, x.end) < std::pair(y.begin, y.end);
      });
    }
  };

  // Splits the rows into atoms and finds their groups.
  void cut(const std::map<IntervalSet, std::int64_t, Less>& takers) {
    // the rows at which a taker begins or ends
    std::vector<std::pair<std::int64_t, std::size_t>> edges;
    std::size_t taker = 0;
    for (const auto& [rows, times] : takers) {
      for (const Interval& interval : rows) {
        edges.emplace_back(interval.begin, taker);
        edges.emplace_back(interval.end, taker);
      }
      ++taker;
    }
    std::sort(edges.begin(), edges.end());
    std::map<Wanted, std::size_t> numbers;
    Wanted wanted((taker + 63) / 64, 0);
    std::int64_t last = 0;
    bool any = false;
    for (const auto& [row, which] : edges) {
      base::charge(8 + std::ssize(wanted));
      if (any && row > last) {
        const auto [at, added] = numbers.try_emplace(wanted, groups_.size());
        if (added) groups_.push_back(wanted);
        atoms_.push_back({{last, row}, at->second});
      }
      last = row;
      wanted[which / 64] ^= std::uint64_t{1} << which % 64;
      any = std::ranges::any_of(wanted, [](std::uint64_t bits) { return bits != 0; });
    }
  }

  // The total weight of the takers that have rows of both groups.
  std::int64_t shared(std::size_t a, std::size_t b) const {
    std::int64_t weight = 0;
    base::charge(std::ssize(groups_[a]));
    for (std::size_t word = 0; word < groups_[a].size(); ++word) {
      for (std::uint64_t bits = groups_[a][word] & groups_[b][word]; bits != 0; bits &= bits - 1) {
        weight += weights_[word * 64 + static_cast<std::size_t>(std::countr_zero(bits))];
      }
    }
    return weight;
  }

  // The total number of ranges of all takers. A range begins at an atom whose taker does not take
  // the atom before it.
  std::int64_t ranges(const std::vector<std::size_t>& order) const {
    std::int64_t count = 0;
    for (std::size_t i = 0; i < order.size(); ++i) {
      const std::size_t group = atoms_[order[i]].group;
      count += shared(group, group);
      if (i > 0) count -= shared(group, atoms_[order[i - 1]].group);
    }
    return count;
  }

  // Orders the groups as a path. Pairs that share the most takers are joined first, unless a group
  // would get a third neighbour or a circle would close.
  std::vector<std::size_t> path() const {
    const std::size_t count = groups_.size();
    std::vector<std::size_t> order(count);
    std::iota(order.begin(), order.end(), std::size_t{0});
    if (count > kMaxCompared) return order;
    // sorted by shared weight, the largest first
    std::vector<std::tuple<std::int64_t, std::size_t, std::size_t>> pairs;
    for (std::size_t a = 0; a < count; ++a) {
      for (std::size_t b = a + 1; b < count; ++b) {
        if (const std::int64_t weight = shared(a, b); weight > 0) pairs.emplace_back(-weight, a, b);
      }
    }
    std::sort(pairs.begin(), pairs.end());
    std::vector<std::vector<std::size_t>> neighbours(count);
    // for the end of a path: the other end of the path
    std::vector<std::size_t> end_of_path = order;
    for (const auto& [weight, a, b] : pairs) {
      if (neighbours[a].size() == 2 || neighbours[b].size() == 2 || end_of_path[a] == b) continue;
      neighbours[a].push_back(b);
      neighbours[b].push_back(a);
      const std::size_t far_a = end_of_path[a];
      const std::size_t far_b = end_of_path[b];
      end_of_path[far_a] = far_b;
      end_of_path[far_b] = far_a;
    }
    // Appends the paths one after another, each from the end whose rows come first.
    std::vector<bool> placed(count, false);
    order.clear();
    for (std::size_t start = 0; start < count; ++start) {
      if (placed[start] || neighbours[start].size() == 2) continue;
      for (std::size_t at = start;;) {
        placed[at] = true;
        order.push_back(at);
        const auto next =
            std::ranges::find_if(neighbours[at], [&](std::size_t other) { return !placed[other]; });
        if (next == neighbours[at].end()) break;
        at = *next;
      }
    }
    return order;
  }

  // The atoms group by group. Within a group they are in the shard's order.
  std::vector<std::size_t> group_order() const {
    std::vector<std::vector<std::size_t>> members(groups_.size());
    for (std::size_t i = 0; i < atoms_.size(); ++i) members[atoms_[i].group].push_back(i);
    std::vector<std::size_t> order;
    for (const std::size_t group : path()) {
      order.insert(order.end(), members[group].begin(), members[group].end());
    }
    return order;
  }

  std::vector<Interval> pieces(const std::vector<std::size_t>& order) const {
    std::vector<Interval> pieces;
    for (const std::size_t i : order) {
      const Interval& rows = atoms_[i].rows;
      if (!pieces.empty() && pieces.back().end == rows.begin) {
        pieces.back().end = rows.end;
      } else {
        pieces.push_back(rows);
      }
    }
    return pieces;
  }

  std::vector<std::int64_t> weights_;  // one for each distinct taker: the number of equal takers
  std::int64_t all_weights_ = 0;
  std::vector<Atom> atoms_;     // sorted by row of the shard
  std::vector<Wanted> groups_;  // sorted by first row
};

}  // namespace

PackedRows::PackedRows(std::vector<Interval> pieces) : pieces_(std::move(pieces)) {
  starts_.reserve(pieces_.size());
  ascending_.resize(pieces_.size());
  for (std::size_t i = 0; i < pieces_.size(); ++i) {
    starts_.push_back(count_);
    count_ += pieces_[i].size();
    ascending_[i] = static_cast<std::uint32_t>(i);
  }
  std::ranges::sort(ascending_, {}, [&](std::uint32_t i) { return pieces_[i].begin; });
}

IntervalSet PackedRows::places_of(const IntervalSet& rows) const {
  std::vector<Interval> places;
  auto at = ascending_.begin();
  base::charge(4 * std::ssize(rows));
  for (const Interval& interval : rows) {
    at = std::partition_point(at, ascending_.end(),
                              [&](std::uint32_t i) { return pieces_[i].end <= interval.begin; });
    for (auto each = at; each != ascending_.end() && pieces_[*each].begin < interval.end; ++each) {
      const Interval part = pattern::intersection(pieces_[*each], interval);
      const std::int64_t shift = starts_[*each] - pieces_[*each].begin;
      places.push_back({part.begin + shift, part.end + shift});
    }
  }
  std::ranges::sort(places, {}, &Interval::begin);
  IntervalSet joined;
  for (const Interval& place : places) pattern::append(&joined, place);
  return joined;
}

std::size_t PackedRows::first_piece(std::int64_t place) const {
  const auto behind = std::upper_bound(starts_.begin(), starts_.end(), place);
  return behind == starts_.begin() ? 0 : static_cast<std::size_t>(behind - starts_.begin()) - 1;
}

PackedRows pack_rows_of(std::span<const IntervalSet* const> takers) {
  return PackedRows(RowOrder(takers).pieces());
}

}  // namespace annulus::ring
