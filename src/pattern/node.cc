#include "pattern/node.h"

#include <algorithm>
#include <numeric>

#include "base/fail.h"
#include "pattern/positions.h"

namespace annulus::pattern {
namespace {

NodePointer checked(Node node) {
  if (node.depth > kMaxDepth) {
    base::fail(ErrorCode::kInvalidArgument, "the expression nests {} levels deep, at most {}",
               node.depth, kMaxDepth);
  }
  if (node.leaves > kMaxLeaves) {
    base::fail(ErrorCode::kInvalidArgument, "the expression has {} leaves, at most {}", node.leaves,
               kMaxLeaves);
  }
  return std::make_shared<const Node>(std::move(node));
}

void refuse_sum(const Node& child, const char* parent) {
  if (child.kind != Kind::kSum) return;
  base::fail(ErrorCode::kInvalidArgument,
             "sum(...) is inside {}; it states how often a key counts, and can only be the whole "
             "expression",
             parent);
}

std::int64_t common_period(std::int64_t a, std::int64_t b) {
  if (a == 0 || b == 0) return 0;
  const std::int64_t period = a / std::gcd(a, b) * b;  // both are at most kMaxPeriod
  return period > kMaxPeriod ? 0 : period;
}

// Both are at most kMaxBatches.
std::int64_t common_batches(std::int64_t a, std::int64_t b) {
  const std::int64_t batches = std::lcm(a, b);
  if (batches <= kMaxBatches) return batches;
  base::fail(
      ErrorCode::kInvalidArgument,
      "the expression has {} different batches, at most {} are allowed: several "
      "batches(...) repeat together only after the least common multiple of their numbers of "
      "expressions; give them numbers that divide one another",
      batches, kMaxBatches);
}

const char* name_of(Kind kind) {
  if (kind == Kind::kAnd) return "&";
  if (kind == Kind::kOr) return "|";
  if (kind == Kind::kBatches) return "batches(...)";
  return kind == Kind::kHeads ? "heads(...)" : "another sum(...)";
}

}  // namespace

Pattern make_leaf(leaves::Leaf leaf) {
  std::visit([](auto& one) { one.check(); }, leaf);
  const leaves::Structure structure = leaves::structure_of(leaf);
  return Pattern(std::make_shared<const Node>(
      Node{.kind = Kind::kLeaf,
           .leaf = std::move(leaf),
           .heads = structure.heads,
           .period = structure.head_period > kMaxPeriod ? 0 : structure.head_period.value}));
}

// The node's heads, period, leaves and depth follow from its children: all layouts must be for the
// same number of heads, and the period is the common multiple of the children's periods.
NodePointer combine(Kind kind, const Node::Children& nodes, std::int64_t group) {
  Node node{.kind = kind, .group = group, .leaves = 0};
  const bool chain = kind == Kind::kAnd || kind == Kind::kOr;
  if (kind == Kind::kHeads) {
    const auto period = product(group, static_cast<std::int64_t>(nodes.size()));
    node.period = period > kMaxPeriod ? 0 : period;
  }
  if (kind == Kind::kBatches) {
    node.batches = common_batches(1, static_cast<std::int64_t>(nodes.size()));
  }
  for (const NodePointer& child : nodes) {
    refuse_sum(*child, name_of(kind));
    if (chain && child->kind == kind) {
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
    node.period = common_period(node.period, child->period);
    node.batches = common_batches(node.batches, child->batches);
  }
  for (const NodePointer& child : node.children)
    node.depth = std::max(node.depth, child->depth + 1);
  return checked(std::move(node));
}

NodePointer complement(NodePointer node) {
  refuse_sum(*node, "~");
  Node result{.kind = Kind::kNot,
              .depth = node->depth + 1,
              .leaves = node->leaves,
              .heads = node->heads,
              .period = node->period,
              .batches = node->batches};
  result.children.push_back(std::move(node));
  return checked(std::move(result));
}

void check_batch(const Node& node, const PatternContext& context) {
  if (node.batches == 1 || context.batch >= 0) return;
  base::fail(
      ErrorCode::kInvalidArgument,
      "batches(...) needs the number of the batch, and the context has {}; give one from 0 on, or "
      "take the pattern of one batch (of_batch)",
      context.batch);
}

void check_head(const Node& node, std::int64_t head) {
  if (head < 0 || (node.heads > 1 && head >= node.heads)) {
    base::fail(ErrorCode::kInvalidArgument, "head {} of a pattern made for {} heads", head,
               node.heads);
  }
}

std::int64_t distinct_heads(const Node& node, std::int64_t heads) {
  if (node.heads > 1) {
    if (node.heads == heads) return heads;
    base::fail(ErrorCode::kInvalidArgument,
               "the pattern has a layout of {} heads, the problem has {}; give a layout of 1 or "
               "of {} heads",
               node.heads, heads, heads);
  }
  return node.period == 0 ? heads : std::min(heads, node.period);
}

bool equal(const Node& a, const Node& b) {
  if (&a == &b) return true;
  if (a.kind != b.kind || a.group != b.group || a.children.size() != b.children.size()) {
    return false;
  }
  if (a.kind == Kind::kLeaf) return a.leaf == b.leaf;
  return std::equal(
      a.children.begin(), a.children.end(), b.children.begin(),
      [](const NodePointer& left, const NodePointer& right) { return equal(*left, *right); });
}

}  // namespace annulus::pattern
