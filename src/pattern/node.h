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
    kBand,  // dilated (b is 1), block_dilated, and a level of hierarchical
    kStrided,
    kRandom,
    kSegment,
    kAxial,
    kNatten,
    kVerticalSlash,
    kNot,           // one child
    kAnd,           // two or more children, none of them kAnd
    kOr,            // two or more children, none of them kOr
    kHierarchical,  // one or more children, all of them kBand; sees what any of them sees
    kHeads,         // two or more children: head h sees what child h mod their number sees
    kSum,           // two or more children; the root of its tree. Sees what any of them sees.
  };
  using Children = std::vector<std::shared_ptr<const PatternNode>>;

  Kind kind = Kind::kDense;
  // The numbers of a leaf in the order of the language; band: stride, window (-1: unbounded), b.
  std::int64_t first = 0;
  std::int64_t second = 0;
  std::int64_t third = 0;
  std::vector<std::int64_t> list = {};             // ascending, distinct
  std::vector<std::int64_t> slashes = {};          // vertical_slash: q - k, likewise
  std::shared_ptr<const BlockLayout> layout = {};  // kBlocks: valid
  std::string name = {};                           // kBlocks: the file, or "#digest"
  Children children = {};
  int depth = 1;            // levels of this tree
  int leaves = 1;           // leaves of this tree
  std::int64_t heads = 1;   // H of the per-head layouts in this tree, or 1
  std::int64_t period = 1;  // layouts aside, head h sees what head h mod this sees; 0: none does
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
// c of random(): a row of blocks chooses no more.
constexpr std::int64_t kMostChosen = std::int64_t{1} << 16;
// Periods of heads beyond this are not told from "every head differs": no problem has as many.
constexpr std::int64_t kMostPeriod = std::int64_t{1} << 20;

// A node of one of the kinds with children; children of kAnd in kAnd and of kOr in kOr are taken
// apart, so that a & b & c is one node however it was bracketed. Throws Error{kInvalidArgument}
// beyond the limits, and for a sum below another node.
NodePointer combine(Kind kind, const Node::Children& nodes);
NodePointer complement(NodePointer node);

bool equal(const Node& a, const Node& b);

// True for the kinds that see what any of their children sees.
constexpr bool is_union(Kind kind) {
  return kind == Kind::kOr || kind == Kind::kHierarchical || kind == Kind::kSum;
}

// The child of a kHeads node that a head uses.
inline std::size_t child_of_head(const Node& node, std::int64_t head) {
  return static_cast<std::size_t>(head % static_cast<std::int64_t>(node.children.size()));
}

// Throws Error{kInvalidArgument} for a negative head and where a layout of the tree has no such
// one.
void check_head(const Node& node, std::int64_t head);

// How many of `heads` heads can differ: head h sees what head h mod the result sees. Throws
// Error{kInvalidArgument} where the layouts of the tree are made for another number.
std::int64_t distinct_heads(const Node& node, std::int64_t heads);

// Position q of `head` sees position k; the definition every other evaluation is tested against.
// Requires: check_head passes. Throws Error{kInvalidArgument} where the context lacks what a leaf
// needs.
bool visible(const Node& node, std::int64_t head, std::int64_t q, std::int64_t k,
             const PatternContext& context);

// Which of a layout's distinct heads a query head uses.
inline std::int64_t layout_head(const BlockLayout& layout, std::int64_t head) {
  return layout.distinct_head(head);
}

}  // namespace annulus::pattern

#endif  // ANNULUS_PATTERN_NODE_H_
