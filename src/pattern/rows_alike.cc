#include "pattern/rows_alike.h"

#include <algorithm>
#include <utility>

#include "pattern/leaf_keys.h"
#include "pattern/positions.h"

namespace annulus::pattern {
namespace {

constexpr std::int64_t kNever = std::int64_t{1} << 62;

// The first element of a sorted list above a number.
std::int64_t next_listed(const std::vector<std::int64_t>& list, std::int64_t number) {
  const auto next = std::upper_bound(list.begin(), list.end(), number);
  return next == list.end() ? kNever : *next;
}

// The next multiple of a length above a number.
std::int64_t next_multiple(std::int64_t number, std::int64_t of) {
  return product(floor_div(number, of) + 1, of);
}

// Rows that lie in one block, or segment, of this length see the same keys through the leaf, whose
// edges lie between such blocks; 0: other leaves.
std::int64_t length_alike(const Node& leaf) {
  switch (leaf.kind) {
    case Kind::kBand:
    case Kind::kStrided:
    case Kind::kRandom:
      return leaf.third;
    case Kind::kSegment:
      return leaf.second == 1 ? leaf.first : 1;
    case Kind::kAxial:
    case Kind::kNatten:
    case Kind::kVerticalSlash:
      return 1;
    default:
      return 0;
  }
}

// The first row behind q in which the leaf is something else than ends that stay or move.
std::int64_t next_form(const Node& leaf, std::int64_t q) {
  if (const std::int64_t length = length_alike(leaf)) return next_multiple(q, length);
  switch (leaf.kind) {
    case Kind::kGlobalFirst:
      return q < leaf.first ? leaf.first : kNever;
    case Kind::kGlobalListed: {
      const bool listed = std::binary_search(leaf.list.begin(), leaf.list.end(), q);
      return listed ? q + 1 : next_listed(leaf.list, q);
    }
    case Kind::kDocuments:
      return next_listed(leaf.list, q);
    case Kind::kBlocks: {
      const std::int64_t row = q - (leaf.layout->seq_k - leaf.layout->seq_q);
      if (row >= leaf.layout->seq_q) return kNever;
      const std::int64_t next =
          row < 0 ? 0
                  : std::min(leaf.layout->seq_q,
                             (row / leaf.layout->block_rows + 1) * leaf.layout->block_rows);
      return q + (next - row);
    }
    default:
      return kNever;
  }
}

// The first end above `position` that the leaf has in row q and that stays where it is.
std::int64_t next_end(const Node& leaf, std::int64_t q, std::int64_t position) {
  const auto if_above = [&](std::int64_t end) { return end > position ? end : kNever; };
  if (const std::int64_t length = length_alike(leaf)) return next_multiple(position, length);
  switch (leaf.kind) {
    case Kind::kSink:
      return if_above(leaf.first);
    case Kind::kGlobalFirst:
      return q < leaf.first ? kNever : if_above(leaf.first);
    case Kind::kGlobalListed: {  // each key is an interval of its own
      const bool inside = std::binary_search(leaf.list.begin(), leaf.list.end(), position);
      return inside ? position + 1 : next_listed(leaf.list, position);
    }
    case Kind::kDocuments: {
      const Interval document = document_of(leaf.list, q);
      return std::min(if_above(document.begin), if_above(document.end));
    }
    case Kind::kBlocks: {
      const std::int64_t width = leaf.layout->block_columns;
      return std::min(if_above(leaf.layout->seq_k), next_multiple(position, width));
    }
    default:
      return kNever;
  }
}

// The ends of the leaf that move along with row q.
int moving_ends(const Node& leaf, std::int64_t q, std::int64_t (&ends)[2]) {
  int count = 0;
  if (leaf.kind == Kind::kCausal) ends[count++] = q + 1;
  if (leaf.kind == Kind::kWindow) {
    if (leaf.first != -1) ends[count++] = q - leaf.first;
    if (leaf.second != -1) ends[count++] = q + leaf.second + 1;
  }
  return count;
}

void add_leaves(const Node& node, std::vector<const Node*>* leaves) {
  if (node.children.empty()) leaves->push_back(&node);
  for (const NodePointer& child : node.children) add_leaves(*child, leaves);
}

}  // namespace

bool sees_alike(const Node& leaf, Interval queries) {
  const std::int64_t length = length_alike(leaf);
  return queries.size() == 1 ||
         (length > 1 && floor_div(queries.begin, length) == floor_div(queries.end - 1, length));
}

bool sees_alike_in_groups(const Node& leaf, Interval queries, std::int64_t rows) {
  if (leaf.kind == Kind::kDense) return true;
  if (leaf.kind == Kind::kBlocks) {
    const BlockLayout& layout = *leaf.layout;
    const std::int64_t first = queries.begin - (layout.seq_k - layout.seq_q);
    if (first < 0 || first + queries.size() > layout.seq_q) return false;
    return std::ssize(layout.indices) == layout.heads * layout.rows() * layout.columns() ||
           (first % rows == 0 && layout.block_rows % rows == 0);
  }
  const std::int64_t length = length_alike(leaf);
  return length > 0 && length % rows == 0 && queries.begin % rows == 0;
}

RowsAlike::RowsAlike(const Node& root) { add_leaves(root, &leaves_); }

std::int64_t RowsAlike::from(std::int64_t q, Interval universe) const {
  std::int64_t rows = kNever;
  for (const Node* leaf : leaves_) {
    if (const std::int64_t form = next_form(*leaf, q); form != kNever) {
      rows = std::min(rows, form - q);
    }
    std::int64_t moving[2];
    const int count = moving_ends(*leaf, q, moving);
    for (int i = 0; i < count; ++i) {
      // Up to the row in which this end reaches one that stays.
      std::int64_t next = kNever;
      for (const std::int64_t end : {universe.begin, universe.end}) {
        if (end > moving[i]) next = std::min(next, end);
      }
      for (const Node* other : leaves_) next = std::min(next, next_end(*other, q, moving[i]));
      if (next != kNever) rows = std::min(rows, next - moving[i]);
    }
  }
  return rows;
}

}  // namespace annulus::pattern
