// Stores heads that keep the same blocks once, or stores each head by itself.

#include <algorithm>
#include <map>
#include <numeric>

#include "base/fail.h"
#include "base/hash.h"
#include "base/work.h"
#include "layout/builder.h"

namespace annulus::layout {
namespace {

// A layout with one distinct head for each of `chosen`.
BlockLayout with_heads(const LayoutView& from, std::span<const std::int64_t> chosen,
                       std::span<const std::int32_t> map) {
  const base::Work work({}, "storing the heads of a layout");
  Builder builder(from.block_rows, from.block_columns, from.seq_q, from.seq_k,
                  static_cast<std::int64_t>(chosen.size()));
  for (const std::int64_t head : chosen) {
    for (std::int64_t row = 0; row < from.rows(); ++row) {
      for (std::int64_t at = begin_of(from, head, row); at < begin_of(from, head, row + 1); ++at) {
        builder.add(from.indices[static_cast<std::size_t>(at)], block_at(from, at));
      }
      builder.end_row();
    }
  }
  return builder.finish(map);
}

// The part of an array that belongs to one distinct head.
template <typename T>
std::span<const T> part(std::span<const T> array, const LayoutView& layout, std::int64_t head) {
  const auto begin = static_cast<std::size_t>(begin_of(layout, head, 0));
  return array.subspan(begin,
                       static_cast<std::size_t>(begin_of(layout, head, layout.rows())) - begin);
}

bool flags_equal(const LayoutView& layout, std::int64_t a, std::int64_t b) {
  return layout.partial.empty() ||
         std::ranges::equal(part(layout.partial, layout, a), part(layout.partial, layout, b));
}

bool heads_equal(const LayoutView& layout, std::int64_t a, std::int64_t b) {
  for (std::int64_t row = 0; row < layout.rows(); ++row) {
    if (begin_of(layout, a, row + 1) - begin_of(layout, a, row) !=
        begin_of(layout, b, row + 1) - begin_of(layout, b, row)) {
      return false;
    }
  }
  return std::ranges::equal(part(layout.indices, layout, a), part(layout.indices, layout, b)) &&
         flags_equal(layout, a, b);
}

}  // namespace
}  // namespace annulus::layout

namespace annulus::inline v0 {

BlockLayout share_heads(const LayoutView& from) {
  const base::Work work({}, "sharing the heads of a layout");
  from.validate();
  std::vector<std::int64_t> chosen;
  std::vector<std::int32_t> map;
  // Heads are found by the digest of their columns, so there are few comparisons, even with many
  // heads.
  std::multimap<base::Digest, std::int32_t> known;
  for (std::int64_t query = 0; query < from.query_heads(); ++query) {
    const std::int64_t head = from.distinct_head(query);
    const auto columns = layout::part(from.indices, from, head);
    base::charge(1 + from.rows() + static_cast<std::int64_t>(columns.size()));
    const base::Digest digest = base::digest(std::as_bytes(columns));
    auto [at, end] = known.equal_range(digest);
    while (at != end &&
           !layout::heads_equal(from, head, chosen[static_cast<std::size_t>(at->second)])) {
      ++at;
    }
    if (at == end) {
      at = known.emplace(digest, static_cast<std::int32_t>(chosen.size()));
      chosen.push_back(head);
    }
    map.push_back(at->second);
  }
  if (map.size() == chosen.size()) map.clear();
  return layout::with_heads(from, chosen, map);
}

BlockLayout part_heads(const LayoutView& from) {
  from.validate();
  std::vector<std::int64_t> chosen;
  for (std::int64_t query = 0; query < from.query_heads(); ++query) {
    chosen.push_back(from.distinct_head(query));
  }
  return layout::with_heads(from, chosen, {});
}

BlockLayout head_of(const LayoutView& from, std::int64_t head) {
  from.validate();
  if (head < 0 || (from.query_heads() > 1 && head >= from.query_heads())) {
    base::fail(ErrorCode::kInvalidArgument, "there is no head {} in a layout for {}", head,
               from.query_heads());
  }
  const std::int64_t chosen = from.distinct_head(from.query_heads() == 1 ? 0 : head);
  return layout::with_heads(from, {&chosen, 1}, {});
}

}  // namespace annulus::inline v0
