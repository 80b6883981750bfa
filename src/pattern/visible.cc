// One pair at a time: what the leaves mean, written as docs/patterns.md says it.
#include <algorithm>
#include <cstdlib>

#include "base/fail.h"
#include "pattern/node.h"
#include "pattern/positions.h"
#include "pattern/random_blocks.h"

namespace annulus::pattern {
namespace {

bool has(const std::vector<std::int64_t>& list, std::int64_t value) {
  return std::binary_search(list.begin(), list.end(), value);
}

bool document(const Node& leaf, std::int64_t q, std::int64_t k) {
  const auto [low, high] = std::minmax(q, k);
  const auto next = std::upper_bound(leaf.list.begin(), leaf.list.end(), low);
  return next == leaf.list.end() || *next > high;
}

bool kept_block(const BlockLayout& layout, std::int64_t head, std::int64_t q, std::int64_t k) {
  const std::int64_t row = difference(q, layout.seq_k - layout.seq_q);
  if (row < 0 || row >= layout.seq_q || k < 0 || k >= layout.seq_k) return false;
  const std::span<const std::int32_t> kept =
      layout.row(layout_head(layout, head), row / layout.block_rows);
  return std::binary_search(kept.begin(), kept.end(), k / layout.block_columns);
}

// Of stride, window and block: (i - j) mod stride = 0 and |i - j| <= window.
bool band(const Node& leaf, std::int64_t q, std::int64_t k) {
  const std::int64_t i = floor_div(q, leaf.third);
  const std::int64_t j = floor_div(k, leaf.third);
  if (floor_mod(i, leaf.first) != floor_mod(j, leaf.first)) return false;
  const std::int64_t distance = i < j ? difference(j, i) : difference(i, j);
  return leaf.second == -1 || distance <= leaf.second;
}

bool strided(const Node& leaf, std::int64_t q, std::int64_t k) {
  const std::int64_t i = floor_div(q, leaf.third);
  const std::int64_t j = floor_div(k, leaf.third);
  const std::int64_t distance = i < j ? difference(j, i) : difference(i, j);
  return floor_mod(j, leaf.first) == 0 || distance <= leaf.second;
}

bool chosen_block(const Node& leaf, std::int64_t head, std::int64_t q, std::int64_t k,
                  const PatternContext& context) {
  const std::int64_t columns = random_columns(leaf, context);
  const std::int64_t j = floor_div(k, leaf.third);
  if (j < 0 || j >= columns) return false;
  std::vector<std::int64_t> chosen;
  choose_columns(leaf, head, floor_div(q, leaf.third), columns, context, &chosen);
  return has(chosen, j);
}

// Of w and r: the same segment, and both offsets in it are congruent to the head.
bool segment(const Node& leaf, std::int64_t head, std::int64_t q, std::int64_t k) {
  const auto chosen = [&](std::int64_t position) {
    return floor_mod(position, leaf.first) % leaf.second == head % leaf.second;
  };
  return floor_div(q, leaf.first) == floor_div(k, leaf.first) && chosen(q) && chosen(k);
}

// A grid's rows are `width` positions long; position 0 is its first cell.
struct Cell {
  std::int64_t row = 0;
  std::int64_t column = 0;
  bool inside = false;
};
Cell cell_of(const Node& leaf, std::int64_t position) {
  const std::int64_t row = floor_div(position, leaf.second);
  return {row, floor_mod(position, leaf.second), row >= 0 && row < leaf.first};
}

bool axial(const Node& leaf, std::int64_t q, std::int64_t k) {
  const Cell query = cell_of(leaf, q);
  const Cell key = cell_of(leaf, k);
  return query.inside && key.inside && (query.row == key.row || query.column == key.column);
}

bool natten(const Node& leaf, std::int64_t q, std::int64_t k) {
  const Cell query = cell_of(leaf, q);
  const Cell key = cell_of(leaf, k);
  const std::int64_t reach = leaf.third / 2;
  const auto near = [&](std::int64_t at, std::int64_t other, std::int64_t length) {
    return std::abs(std::clamp(at, reach, length - 1 - reach) - other) <= reach;
  };
  return query.inside && key.inside && near(query.row, key.row, leaf.first) &&
         near(query.column, key.column, leaf.second);
}

bool vertical_slash(const Node& leaf, std::int64_t q, std::int64_t k) {
  return has(leaf.list, k) || has(leaf.slashes, difference(q, k));
}

}  // namespace

bool visible(const Node& node, std::int64_t head, std::int64_t q, std::int64_t k,
             const PatternContext& context) {
  const auto child_sees = [&](const NodePointer& child) {
    return visible(*child, head, q, k, context);
  };
  switch (node.kind) {
    case Kind::kDense:
      return true;
    case Kind::kCausal:
      return k <= q;
    case Kind::kWindow: {
      const std::int64_t distance = difference(k, q);
      return (node.first == -1 || distance >= -node.first) &&
             (node.second == -1 || distance <= node.second);
    }
    case Kind::kSink:
      return k < node.first;
    case Kind::kGlobalFirst:
      return q < node.first || k < node.first;
    case Kind::kGlobalListed:
      return has(node.list, q) || has(node.list, k);
    case Kind::kDocuments:
      return document(node, q, k);
    case Kind::kBlocks:
      return kept_block(*node.layout, head, q, k);
    case Kind::kBand:
      return band(node, q, k);
    case Kind::kStrided:
      return strided(node, q, k);
    case Kind::kRandom:
      return chosen_block(node, head, q, k, context);
    case Kind::kSegment:
      return segment(node, head, q, k);
    case Kind::kAxial:
      return axial(node, q, k);
    case Kind::kNatten:
      return natten(node, q, k);
    case Kind::kVerticalSlash:
      return vertical_slash(node, q, k);
    case Kind::kNot:
      return !child_sees(node.children.front());
    case Kind::kAnd:
      return std::all_of(node.children.begin(), node.children.end(), child_sees);
    case Kind::kOr:
    case Kind::kHierarchical:
    case Kind::kSum:
      return std::any_of(node.children.begin(), node.children.end(), child_sees);
    case Kind::kHeads:
      return child_sees(node.children[child_of_head(node, head)]);
  }
  base::fail(ErrorCode::kInternal, "a pattern node of kind {}", static_cast<int>(node.kind));
}

}  // namespace annulus::pattern
