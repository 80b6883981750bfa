#include "pattern/rows_alike.h"

#include <algorithm>
#include <optional>

#include "base/work.h"
#include "pattern/node.h"
#include "pattern/positions.h"

namespace annulus::pattern {
namespace {

void add_leaves(const Node& node, std::vector<const Node*>* leaves) {
  if (node.kind == Kind::kLeaf) leaves->push_back(&node);
  for (const NodePointer& child : node.children) add_leaves(*child, leaves);
}

// The rows of a layout that belong to these queries; nullopt if some queries are outside of it.
std::optional<Interval> rows_of(const BlockLayout& layout, Interval queries) {
  const std::int64_t first = queries.begin - (layout.seq_k - layout.seq_q);
  if (first < 0 || first + queries.size() > layout.seq_q) return std::nullopt;
  return Interval{first, first + queries.size()};
}

}  // namespace

bool sees_alike(const Node& node, Interval queries) {
  if (queries.size() == 1) return true;
  if (node.kind != Kind::kLeaf) return false;
  if (const BlockLayout* layout = leaves::structure_of(node.leaf).layout) {
    const auto rows = rows_of(*layout, queries);
    return rows && rows->begin / layout->block_rows == (rows->end - 1) / layout->block_rows;
  }
  const std::int64_t length = leaves::alike_rows_of(node.leaf);
  return (length > 1 && floor_div(queries.begin, length) == floor_div(queries.end - 1, length));
}

bool sees_alike_in_groups(const Node& node, Interval queries, std::int64_t rows) {
  if (node.kind != Kind::kLeaf) return false;
  if (const BlockLayout* layout = leaves::structure_of(node.leaf).layout) {
    const auto own = rows_of(*layout, queries);
    return own &&
           (std::ssize(layout->indices) == layout->heads * layout->rows() * layout->columns() ||
            (own->begin % rows == 0 && layout->block_rows % rows == 0));
  }
  const std::int64_t length = leaves::alike_rows_of(node.leaf);
  return length == kNever || (length > 0 && length % rows == 0 && queries.begin % rows == 0);
}

RowsAlike::RowsAlike(const Node& root) { add_leaves(root, &leaves_); }

bool RowsAlike::see_the_same(Interval queries) const {
  base::charge(1);
  return std::ranges::all_of(leaves_, [&](const Node* leaf) { return sees_alike(*leaf, queries); });
}

std::int64_t RowsAlike::from(std::int64_t q, Interval universe) const {
  std::int64_t rows = kNever;
  std::int64_t passes = 1;  // passes over the leaves
  const auto look_at = [&](const auto& leaf) {
    if (const std::int64_t form = leaf.next_form(q); form != kNever) {
      rows = std::min(rows, form - q);
    }
    const leaves::MovingEnds moving = leaf.moving_ends(q);
    passes += moving.count;
    for (int i = 0; i < moving.count; ++i) {
      // The progression ends when this end reaches a fixed end.
      std::int64_t next = next_end(q, moving.at[i]);
      for (const std::int64_t end : {universe.begin, universe.end}) {
        if (end > moving.at[i]) next = std::min(next, end);
      }
      if (next != kNever) rows = std::min(rows, next - moving.at[i]);
    }
  };
  for (const Node* node : leaves_) std::visit(look_at, node->leaf);
  base::charge(1 + passes * std::ssize(leaves_) / 2);
  return rows;
}

// The first fixed end above a position that any leaf has in row q.
std::int64_t RowsAlike::next_end(std::int64_t q, std::int64_t position) const {
  std::int64_t next = kNever;
  for (const Node* node : leaves_) {
    next = std::min(
        next, std::visit([&](const auto& leaf) { return leaf.next_end(q, position); }, node->leaf));
  }
  return next;
}

}  // namespace annulus::pattern
