#ifndef ANNULUS_PATTERN_NODE_H_
#define ANNULUS_PATTERN_NODE_H_

// The expression tree behind Pattern. Nodes are immutable and shared; every way to make one goes
// through the functions of annulus/pattern.h or through combine(), which check the limits below.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "annulus/pattern.h"

namespace annulus::inline v0::detail {

struct PatternNode {
  enum class Kind {
    kDense,
    kCausal,
    kWindow,
    kSink,
    kGlobalFirst,   // global(n)
    kGlobalListed,  // global([...])
    kDocuments,
    kBlocks,
    kNot,  // one child
    kAnd,  // two or more children, none of them kAnd
    kOr,   // two or more children, none of them kOr
  };
  using Children = std::vector<std::shared_ptr<const PatternNode>>;

  Kind kind = Kind::kDense;
  std::int64_t first = 0;                          // window: left; sink, global(n): n
  std::int64_t second = 0;                         // window: right
  std::vector<std::int64_t> list = {};             // ascending, distinct
  std::shared_ptr<const BlockLayout> layout = {};  // kBlocks: valid
  std::string name = {};                           // kBlocks: the file, or "#digest"
  Children children = {};
  int depth = 1;           // levels of this tree
  int leaves = 1;          // leaves of this tree
  std::int64_t heads = 1;  // H of the per-head layouts in this tree, or 1
};

}  // namespace annulus::inline v0::detail

namespace annulus::pattern {

using Node = detail::PatternNode;
using Kind = Node::Kind;
using NodePointer = std::shared_ptr<const Node>;

constexpr int kMostDepth = 64;
constexpr int kMostLeaves = 1024;
// Numbers and listed positions: far from where sums of three of them could overflow.
constexpr std::int64_t kMostNumber = std::int64_t{1} << 60;

// kAnd or kOr of at least two nodes; children of the same kind are taken apart, so that a & b & c
// is one node however it was bracketed. Throws Error{kInvalidArgument} beyond the limits.
NodePointer combine(Kind kind, const Node::Children& nodes);
NodePointer complement(NodePointer node);

bool equal(const Node& a, const Node& b);

// Throws Error{kInvalidArgument} where a layout of the tree has no such head.
void check_head(const Node& node, std::int64_t head);

// Position q of `head` sees position k; the definition every other evaluation is tested against.
// Requires: check_head passes.
bool visible(const Node& node, std::int64_t head, std::int64_t q, std::int64_t k);

// a - b, held at the ends of the type: comparisons with numbers up to kMostNumber stay exact.
inline std::int64_t difference(std::int64_t a, std::int64_t b) {
  std::int64_t result = 0;
  if (!__builtin_sub_overflow(a, b, &result)) return result;
  return b < 0 ? INT64_MAX : INT64_MIN;
}

// Which of a layout's distinct heads a query head uses.
inline std::int64_t layout_head(const BlockLayout& layout, std::int64_t head) {
  return layout.distinct_head(head);
}

}  // namespace annulus::pattern

#endif  // ANNULUS_PATTERN_NODE_H_
