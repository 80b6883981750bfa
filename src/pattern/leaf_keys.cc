#include "pattern/leaf_keys.h"

#include <algorithm>
#include <limits>
#include <tuple>
#include <utility>

#include "base/fail.h"
#include "pattern/grid_keys.h"
#include "pattern/positions.h"
#include "pattern/random_blocks.h"

namespace annulus::pattern {
namespace {

constexpr std::int64_t kLow = std::numeric_limits<std::int64_t>::min();
constexpr std::int64_t kHigh = std::numeric_limits<std::int64_t>::max();

void add(IntervalSet* out, Interval universe, std::int64_t begin, std::int64_t end) {
  append(out, intersection({begin, end}, universe));
}

// Listed positions within the universe.
void append_listed(const std::vector<std::int64_t>& list, Interval universe, IntervalSet* out) {
  for (auto at = std::lower_bound(list.begin(), list.end(), universe.begin);
       at != list.end() && *at < universe.end; ++at) {
    append(out, {*at, *at + 1});
  }
}

// The keys that one row of blocks keeps.
void append_kept(std::span<const std::int32_t> kept, const BlockLayout& layout, Interval universe,
                 IntervalSet* out) {
  const Interval inside = intersection(universe, {0, layout.seq_k});
  if (inside.empty()) return;
  const std::int64_t width = layout.block_columns;
  for (auto at = std::lower_bound(kept.begin(), kept.end(), inside.begin / width);
       at != kept.end() && *at * width < inside.end; ++at) {
    append(out, intersection({*at * width, (*at + 1) * width}, inside));
  }
}

// Joins what each of rows [first, last] of blocks sees; append_row(row, out) gives one of them.
template <typename AppendRow>
void join_rows(std::int64_t first, std::int64_t last, Wanted wanted, const AppendRow& append_row,
               IntervalSet* out) {
  append_row(first, out);
  IntervalSet next, joined;
  for (std::int64_t row = first + 1; row <= last; ++row) {
    next.clear();
    append_row(row, &next);
    (wanted == Wanted::kAny ? unite : intersect)(*out, next, &joined);
    std::swap(*out, joined);
  }
}

void blocks_keys(const BlockLayout& layout, std::int64_t head, Interval queries, Interval universe,
                 Wanted wanted, IntervalSet* out) {
  const std::int64_t origin = layout.seq_k - layout.seq_q;  // position of the layout's first row
  const Interval rows = {queries.begin - origin, queries.end - origin};
  const Interval inside = intersection(rows, {0, layout.seq_q});
  if (inside.empty() || (wanted == Wanted::kAll && inside != rows)) return;
  const std::int64_t own_head = layout_head(layout, head);
  join_rows(
      inside.begin / layout.block_rows, (inside.end - 1) / layout.block_rows, wanted,
      [&](std::int64_t row, IntervalSet* keys) {
        append_kept(layout.row(own_head, row), layout, universe, keys);
      },
      out);
}

// The rows of blocks of b that a range of positions touches, first and last.
struct Rows {
  std::int64_t first;
  std::int64_t last;
  std::int64_t count() const { return last - first + 1; }
};
Rows rows_of(Interval queries, std::int64_t b) {
  return {floor_div(queries.begin, b), floor_div(queries.end - 1, b)};
}

// The keys of blocks [first + t stride, last + t stride] for t in [low, high], as far as they are
// in the universe.
void append_comb(Rows blocks, std::int64_t stride, std::int64_t low, std::int64_t high,
                 std::int64_t b, Interval universe, IntervalSet* out) {
  if (universe.empty()) return;
  const Rows there = rows_of(universe, b);
  low = std::max(low, -floor_div(blocks.last - there.first, stride));
  high = std::min(high, floor_div(there.last - blocks.first, stride));
  for (std::int64_t t = low; t <= high; ++t) {
    add(out, universe, product(blocks.first + t * stride, b),
        product(blocks.last + t * stride + 1, b));
  }
}

// How many strides the window of a band reaches to each side.
std::int64_t reach_of(const Node& band) {
  return band.second == -1 ? kHigh : band.second / band.first;
}

// Row i sees the blocks i + t stride with |t| <= reach: rows that are neighbours see neighbours.
void band_keys(const Node& leaf, Interval queries, Interval universe, Wanted wanted,
               IntervalSet* out) {
  const auto [stride, window, b] = std::tuple(leaf.first, leaf.second, leaf.third);
  const Rows rows = rows_of(queries, b);
  const std::int64_t reach = reach_of(leaf);
  if (wanted == Wanted::kAll && rows.count() > 1) {
    if (stride > 1) return;
    if (window == -1) return add(out, universe, kLow, kHigh);
    return add(out, universe, product(rows.last - window, b), product(rows.first + window + 1, b));
  }
  if (rows.count() < stride) {
    return append_comb(rows, stride, reach == kHigh ? kLow : -reach, reach, b, universe, out);
  }
  if (reach == kHigh) return add(out, universe, kLow, kHigh);
  add(out, universe, product(rows.first - reach * stride, b),
      product(rows.last + reach * stride + 1, b));
}

// The blocks within n of any or of all rows.
Interval neighbours(const Node& strided, Rows rows, Wanted wanted) {
  const bool any = wanted == Wanted::kAny;
  return {product((any ? rows.first : rows.last) - strided.second, strided.third),
          product((any ? rows.last : rows.first) + strided.second + 1, strided.third)};
}

void strided_keys(const Node& leaf, Interval queries, Interval universe, Wanted wanted,
                  IntervalSet* out) {
  const Rows rows = rows_of(queries, leaf.third);
  const Interval near = intersection(neighbours(leaf, rows, wanted), universe);
  // Within the neighbourhood the comb says nothing new.
  const Interval below = {universe.begin, near.empty() ? universe.end : near.begin};
  append_comb({0, 0}, leaf.first, kLow, kHigh, leaf.third, below, out);
  if (near.empty()) return;
  append(out, near);
  append_comb({0, 0}, leaf.first, kLow, kHigh, leaf.third, {near.end, universe.end}, out);
}

void random_keys(const Node& leaf, std::int64_t head, const PatternContext& context,
                 Interval queries, Interval universe, Wanted wanted, IntervalSet* out) {
  const std::int64_t b = leaf.third;
  const std::int64_t columns = random_columns(leaf, context);
  if (leaf.first >= columns) return add(out, universe, 0, product(columns, b));
  const Rows rows = rows_of(queries, b);
  std::vector<std::int64_t> chosen;
  join_rows(
      rows.first, rows.last, wanted,
      [&](std::int64_t row, IntervalSet* keys) {
        choose_columns(leaf, head, row, columns, context, &chosen);
        for (const std::int64_t column : chosen) {
          add(keys, universe, product(column, b), product(column + 1, b));
        }
      },
      out);
}

// The offsets in a segment that a head takes are first, first + r, ...; position `at` or the next
// one behind it.
std::int64_t next_chosen(const Node& segment, std::int64_t head, std::int64_t at) {
  const auto [w, r] = std::pair(segment.first, segment.second);
  const std::int64_t offset = floor_mod(at, w);
  const std::int64_t next = offset + floor_mod(head % r - offset, r);
  if (next < w) return at - offset + next;
  const std::int64_t behind = at - offset + w;
  return head % r < w ? behind + head % r : kHigh;
}

// Calls f(segment) for those of which the head takes a query.
template <typename F>
void each_segment(const Node& leaf, std::int64_t head, Interval queries, const F& f) {
  for (std::int64_t q = next_chosen(leaf, head, queries.begin); q < queries.end;) {
    const std::int64_t begin = q - floor_mod(q, leaf.first);
    f(Interval{begin, begin + leaf.first});
    q = next_chosen(leaf, head, begin + leaf.first);
  }
}

void segment_keys(const Node& leaf, std::int64_t head, Interval queries, Interval universe,
                  Wanted wanted, IntervalSet* out) {
  const auto [w, r] = std::pair(leaf.first, leaf.second);
  if (wanted == Wanted::kAll && queries.size() > 1) {
    // Of two neighbours in a segment the head takes one at most, unless it takes all.
    if (r > 1 || floor_div(queries.begin, w) != floor_div(queries.end - 1, w)) return;
  }
  each_segment(leaf, head, queries, [&](const Interval& segment) {
    const Interval keys = intersection(segment, universe);
    if (r == 1) return append(out, keys);
    for (std::int64_t k = next_chosen(leaf, head, keys.begin); k < keys.end; k += r) {
      append(out, {k, k + 1});
    }
  });
}

void vertical_slash_keys(const Node& leaf, Interval queries, Interval universe, Wanted wanted,
                         IntervalSet* out) {
  IntervalSet columns, slashes;
  append_listed(leaf.list, universe, &columns);
  // Slashes d, d + 1, ..., e seen from queries [a, b): any sees [a - e, b - d), all sees
  // [b - 1 - e, a - d + 1). Larger slashes are earlier keys.
  for (auto end = leaf.slashes.rbegin(); end != leaf.slashes.rend();) {
    auto last = end;
    while (std::next(last) != leaf.slashes.rend() && *std::next(last) == *last - 1) ++last;
    const bool any = wanted == Wanted::kAny;
    add(&slashes, universe, (any ? queries.begin : queries.end - 1) - *end,
        (any ? queries.end - 1 : queries.begin) - *last + 1);
    end = std::next(last);
  }
  unite(columns, slashes, out);
}

}  // namespace

Interval document_of(const std::vector<std::int64_t>& starts, std::int64_t q) {
  const auto next = std::upper_bound(starts.begin(), starts.end(), q);
  return {next == starts.begin() ? kLow : *(next - 1), next == starts.end() ? kHigh : *next};
}

void leaf_keys(const Node& leaf, std::int64_t head, const PatternContext& context, Interval queries,
               Interval universe, Wanted wanted, IntervalSet* out) {
  out->clear();
  if (universe.empty()) return;
  const bool any = wanted == Wanted::kAny;
  const std::int64_t first = queries.begin;
  const std::int64_t last = queries.end - 1;
  const auto keys = [&](std::int64_t begin, std::int64_t end) { add(out, universe, begin, end); };
  switch (leaf.kind) {
    case Kind::kDense:
      return keys(kLow, kHigh);
    case Kind::kCausal:
      return keys(kLow, (any ? last : first) + 1);
    case Kind::kWindow:
      // Windows of neighbouring queries overlap or touch, so their union has no hole.
      return keys(leaf.first == -1 ? kLow : (any ? first : last) - leaf.first,
                  leaf.second == -1 ? kHigh : (any ? last : first) + leaf.second + 1);
    case Kind::kSink:
      return keys(kLow, leaf.first);
    case Kind::kGlobalFirst:
      return keys(kLow, (any ? first : last) < leaf.first ? kHigh : leaf.first);
    case Kind::kGlobalListed: {
      const auto [begin, end] =
          std::pair(std::lower_bound(leaf.list.begin(), leaf.list.end(), first),
                    std::upper_bound(leaf.list.begin(), leaf.list.end(), last));
      const std::int64_t listed = end - begin;
      if (any ? listed > 0 : listed == queries.size()) return keys(kLow, kHigh);
      return append_listed(leaf.list, universe, out);
    }
    case Kind::kDocuments: {
      // The documents between the first and the last query's own each hold a query: no hole.
      const Interval low = document_of(leaf.list, first);
      const Interval high = document_of(leaf.list, last);
      if (any || low == high) keys(low.begin, high.end);
      return;
    }
    case Kind::kBlocks:
      return blocks_keys(*leaf.layout, head, queries, universe, wanted, out);
    case Kind::kBand:
      return band_keys(leaf, queries, universe, wanted, out);
    case Kind::kStrided:
      return strided_keys(leaf, queries, universe, wanted, out);
    case Kind::kRandom:
      return random_keys(leaf, head, context, queries, universe, wanted, out);
    case Kind::kSegment:
      return segment_keys(leaf, head, queries, universe, wanted, out);
    case Kind::kAxial:
      return axial_keys(leaf, queries, universe, wanted, out);
    case Kind::kNatten:
      return natten_keys(leaf, queries, universe, wanted, out);
    case Kind::kVerticalSlash:
      return vertical_slash_keys(leaf, queries, universe, wanted, out);
    case Kind::kNot:
    case Kind::kAnd:
    case Kind::kOr:
    case Kind::kHierarchical:
    case Kind::kHeads:
    case Kind::kSum:
      break;
  }
  base::fail(ErrorCode::kInternal, "a pattern leaf of kind {}", static_cast<int>(leaf.kind));
}

bool coarse_leaf_keys(const Node& leaf, std::int64_t head, Interval queries, Interval universe,
                      std::int64_t grain, IntervalSet* all, IntervalSet* any, IntervalSet* mixed) {
  const auto start = [&] {
    for (IntervalSet* set : {all, any, mixed}) set->clear();
  };
  switch (leaf.kind) {
    case Kind::kBand: {
      const auto [stride, b] = std::pair(leaf.first, leaf.third);
      const Rows rows = rows_of(queries, b);
      if (rows.count() >= stride || product(stride, b) > grain) return false;
      start();
      const std::int64_t reach = reach_of(leaf);
      const bool bounded = reach != kHigh;
      add(any, universe, bounded ? product(rows.first - reach * stride, b) : kLow,
          bounded ? product(rows.last + reach * stride + 1, b) : kHigh);
      *mixed = *any;
      return true;
    }
    case Kind::kStrided: {
      if (leaf.first == 1 || product(leaf.first, leaf.third) > grain) return false;
      start();
      // Any b s neighbours outside hold a block that only near rows see, and one that all see.
      const Interval near = neighbours(leaf, rows_of(queries, leaf.third), Wanted::kAll);
      append(all, intersection(near, universe));
      append(any, universe);
      subtract(*any, *all, mixed);
      return true;
    }
    case Kind::kSegment: {
      const auto [w, r] = std::pair(leaf.first, leaf.second);
      if (r == 1 || r > grain || w < r) return false;
      start();
      each_segment(leaf, head, queries, [&](const Interval& segment) {
        const Interval keys = intersection(segment, universe);
        append(any, keys);
        // The keys of two segments do not go on from each other: the last key keeps them apart.
        append(mixed, {keys.begin, std::min(keys.end, segment.end - 1)});
      });
      return true;
    }
    case Kind::kAxial:
      if (leaf.second > grain) return false;
      return coarse_axial_keys(leaf, queries, universe, all, any, mixed);
    default:
      return false;
  }
}

}  // namespace annulus::pattern
