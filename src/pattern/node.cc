#include "pattern/node.h"

#include <algorithm>

#include "base/fail.h"

namespace annulus::pattern {
namespace {

NodePointer checked(Node node) {
  if (node.depth > kMostDepth) {
    base::fail(ErrorCode::kInvalidArgument, "the expression nests {} levels deep, at most {}",
               node.depth, kMostDepth);
  }
  if (node.leaves > kMostLeaves) {
    base::fail(ErrorCode::kInvalidArgument, "the expression has {} leaves, at most {}", node.leaves,
               kMostLeaves);
  }
  return std::make_shared<const Node>(std::move(node));
}

bool block_kept(const BlockLayout& layout, std::int64_t head, std::int64_t q, std::int64_t k) {
  const std::int64_t row = difference(q, layout.seq_k - layout.seq_q);
  if (row < 0 || row >= layout.seq_q || k < 0 || k >= layout.seq_k) return false;
  const std::span<const std::int32_t> kept =
      layout.row(layout_head(layout, head), row / layout.block_rows);
  return std::binary_search(kept.begin(), kept.end(), k / layout.block_columns);
}

}  // namespace

NodePointer combine(Kind kind, const Node::Children& nodes) {
  Node node{.kind = kind, .leaves = 0};
  for (const NodePointer& child : nodes) {
    if (child->kind == kind) {
      node.children.insert(node.children.end(), child->children.begin(), child->children.end());
    } else {
      node.children.push_back(child);
    }
    node.leaves += child->leaves;
    if (node.heads > 1 && child->heads > 1 && node.heads != child->heads) {
      base::fail(
          ErrorCode::kInvalidArgument,
          "the layouts of one expression are made for {} and for {} heads; make them for the "
          "same number, or for 1",
          node.heads, child->heads);
    }
    node.heads = std::max(node.heads, child->heads);
  }
  for (const NodePointer& child : node.children)
    node.depth = std::max(node.depth, child->depth + 1);
  return checked(std::move(node));
}

NodePointer complement(NodePointer node) {
  const int depth = node->depth + 1;
  const int leaves = node->leaves;
  const std::int64_t heads = node->heads;
  return checked({.kind = Kind::kNot,
                  .children = {std::move(node)},
                  .depth = depth,
                  .leaves = leaves,
                  .heads = heads});
}

void check_head(const Node& node, std::int64_t head) {
  if (head < 0 || (node.heads > 1 && head >= node.heads)) {
    base::fail(ErrorCode::kInvalidArgument, "head {} of a pattern made for {} heads", head,
               node.heads);
  }
}

bool equal(const Node& a, const Node& b) {
  if (&a == &b) return true;
  if (a.kind != b.kind || a.first != b.first || a.second != b.second || a.list != b.list ||
      a.children.size() != b.children.size()) {
    return false;
  }
  if (a.layout != b.layout && !(*a.layout == *b.layout)) return false;
  return std::equal(
      a.children.begin(), a.children.end(), b.children.begin(),
      [](const NodePointer& left, const NodePointer& right) { return equal(*left, *right); });
}

bool visible(const Node& node, std::int64_t head, std::int64_t q, std::int64_t k) {
  const auto child_sees = [&](const NodePointer& child) { return visible(*child, head, q, k); };
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
      return std::binary_search(node.list.begin(), node.list.end(), q) ||
             std::binary_search(node.list.begin(), node.list.end(), k);
    case Kind::kDocuments: {
      const auto [low, high] = std::minmax(q, k);
      const auto next = std::upper_bound(node.list.begin(), node.list.end(), low);
      return next == node.list.end() || *next > high;
    }
    case Kind::kBlocks:
      return block_kept(*node.layout, head, q, k);
    case Kind::kNot:
      return !child_sees(node.children.front());
    case Kind::kAnd:
      return std::all_of(node.children.begin(), node.children.end(), child_sees);
    case Kind::kOr:
      return std::any_of(node.children.begin(), node.children.end(), child_sees);
  }
  base::fail(ErrorCode::kInternal, "a pattern node of kind {}", static_cast<int>(node.kind));
}

}  // namespace annulus::pattern
