#ifndef ANNULUS_PATTERN_NODE_H_
#define ANNULUS_PATTERN_NODE_H_

// The expression tree of a Pattern. Nodes are immutable and shared. They are made only by the
// functions of annulus/pattern.h and by combine(), which check the limits below.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "annulus/pattern.h"
#include "pattern/check_number.h"
#include "pattern/leaves/leaves.h"
#include "pattern/node_pointer.h"

namespace annulus::inline v0::detail {

struct PatternNode {
  // A leaf, or a kind that joins other nodes.
  enum class Kind {
    kLeaf,
    kNot,           // one child
    kAnd,           // two or more children, none of them kAnd
    kOr,            // two or more children, none of them kOr
    kHierarchical,  // one or more children, all of them leaves::Band; a query sees what any of
                    // them shows
    kHeads,  // two or more children: the first `group` heads see the first child, the next `group`
             // heads the second, and so on
    kBatches,  // two or more children: batch 0 sees the first child, batch 1 the second, and so on
    kSum,  // two or more children; only as the root of a tree; a query sees what any of them shows
  };
  using Children = std::vector<std::shared_ptr<const PatternNode>>;

  Kind kind = Kind::kLeaf;
  pattern::leaves::Leaf leaf = {};  // only for kLeaf
  std::int64_t group = 1;           // only for kHeads
  Children children = {};
  int depth = 1;           // levels of this tree
  int leaves = 1;          // leaves of this tree
  std::int64_t heads = 1;  // H of the per-head layouts in this tree, or 1
  // Head h sees what head h mod this number sees, apart from layouts; 0: there is no such period.
  std::int64_t period = 1;
  std::int64_t batches = 1;  // batch b sees what batch b mod this number sees
};

}  // namespace annulus::inline v0::detail

namespace annulus::pattern {

using Kind = Node::Kind;

constexpr int kMaxDepth = 64;
constexpr int kMaxLeaves = 1024;
// A longer period of heads counts as "every head differs", since no problem has so large a number
// of heads.
constexpr std::int64_t kMaxPeriod = std::int64_t{1} << 20;
// The most batches that may differ. Each of them has lists of its own, and the numbers of two
// batches(...) in one expression multiply.
constexpr std::int64_t kMaxBatches = 4096;

// Checks a leaf and makes the pattern of it.
Pattern make_leaf(leaves::Leaf leaf);

// Makes a node of one of the kinds with children. Children kAnd of a kAnd, and kOr of a kOr, are
// replaced by their own children, so that a & b & c is one node however it was bracketed. Throws
// Error{kInvalidArgument} for a tree beyond the limits, and for a sum below another node.
NodePointer combine(Kind kind, const Node::Children& nodes, std::int64_t group = 1);
NodePointer complement(NodePointer node);

bool equal(const Node& a, const Node& b);

// Whether a node of this kind shows what any of its children shows.
constexpr bool is_union(Kind kind) {
  return kind == Kind::kOr || kind == Kind::kHierarchical || kind == Kind::kSum;
}

// The child of a kHeads node that a head uses.
inline std::size_t child_of_head(const Node& node, std::int64_t head) {
  return static_cast<std::size_t>(head / node.group %
                                  static_cast<std::int64_t>(node.children.size()));
}

// The child of a kBatches node that a batch uses.
inline std::size_t child_of_batch(const Node& node, std::int64_t batch) {
  return static_cast<std::size_t>(batch % static_cast<std::int64_t>(node.children.size()));
}

// Throws Error{kInvalidArgument} if the tree differs by batch and the context names no batch.
void check_batch(const Node& node, const PatternContext& context);

// Throws Error{kInvalidArgument} for a negative head, and for a head that a layout of the tree does
// not have.
void check_head(const Node& node, std::int64_t head);

// The number of heads, out of `heads`, that can differ: head h sees what head h mod the result
// sees. Throws Error{kInvalidArgument} if the layouts of the tree are made for another number.
std::int64_t distinct_heads(const Node& node, std::int64_t heads);

// Whether position q of `head` sees position k: the definition with which tests compare every other
// evaluation. Requires: check_head and check_batch pass. Throws Error{kInvalidArgument} if the
// context lacks a number that a leaf needs.
bool visible(const Node& node, std::int64_t head, std::int64_t q, std::int64_t k,
             const PatternContext& context);

// Calls f(leaf) for each leaf of a tree, in the order of the tree.
template <typename F>
void each_leaf(const Node& node, const F& f) {
  if (node.kind == Kind::kLeaf) return f(node.leaf);
  for (const NodePointer& child : node.children) each_leaf(*child, f);
}

// Whether f(structure) is true for some leaf of a tree.
template <typename F>
bool any_leaf(const Node& node, const F& f) {
  bool any = false;
  each_leaf(node, [&](const leaves::Leaf& leaf) { any = any || f(leaves::structure_of(leaf)); });
  return any;
}

}  // namespace annulus::pattern

#endif  // ANNULUS_PATTERN_NODE_H_
