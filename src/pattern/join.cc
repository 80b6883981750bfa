// Patterns that join other patterns and have a word of their own: heads, head_groups, sum.
#include "annulus/pattern.h"
#include "base/fail.h"
#include "pattern/check_number.h"
#include "pattern/node.h"

namespace annulus::inline v0 {
namespace {

using pattern::check_number;
using pattern::Kind;
using pattern::Node;

// Patterns cannot be moved from, so their nodes are collected instead.
Pattern combined(const char* name, Kind kind, std::span<const Pattern> patterns,
                 std::int64_t group = 1) {
  if (patterns.empty()) {
    base::fail(ErrorCode::kInvalidArgument, "{}() has no arguments; give at least one pattern",
               name);
  }
  if (patterns.size() == 1) return patterns[0];
  Node::Children nodes;
  for (const Pattern& pattern : patterns) nodes.push_back(pattern.shared_node());
  return Pattern(pattern::combine(kind, nodes, group));
}

}  // namespace

Pattern hierarchical(std::span<const HierarchyLevel> levels) {
  if (levels.empty()) {
    base::fail(ErrorCode::kInvalidArgument, "hierarchical() has no level; give at least one");
  }
  Node::Children nodes;
  for (const HierarchyLevel& level : levels) {
    check_number("hierarchical", "stride", level.stride, 1);
    check_number("hierarchical", "window", level.window, -1);
    check_number("hierarchical", "b", level.block, 1);
    nodes.push_back(
        pattern::make_leaf(pattern::leaves::Band{level.stride, level.window, level.block})
            .shared_node());
  }
  return Pattern(pattern::combine(Kind::kHierarchical, nodes));
}

Pattern hierarchical(std::initializer_list<HierarchyLevel> levels) {
  return hierarchical(std::span<const HierarchyLevel>(levels.begin(), levels.size()));
}

Pattern heads(std::span<const Pattern> patterns) {
  return combined("heads", Kind::kHeads, patterns);
}

Pattern heads(std::initializer_list<Pattern> patterns) {
  return heads(std::span<const Pattern>(patterns.begin(), patterns.size()));
}

Pattern head_groups(std::int64_t n, std::span<const Pattern> patterns) {
  check_number("head_groups", "n", n, 1);
  return combined("head_groups", Kind::kHeads, patterns, n);
}

Pattern head_groups(std::int64_t n, std::initializer_list<Pattern> patterns) {
  return head_groups(n, std::span<const Pattern>(patterns.begin(), patterns.size()));
}

Pattern batches(std::span<const Pattern> patterns) {
  return combined("batches", Kind::kBatches, patterns);
}

Pattern batches(std::initializer_list<Pattern> patterns) {
  return batches(std::span<const Pattern>(patterns.begin(), patterns.size()));
}

Pattern sum(std::span<const Pattern> patterns) { return combined("sum", Kind::kSum, patterns); }

Pattern sum(std::initializer_list<Pattern> patterns) {
  return sum(std::span<const Pattern>(patterns.begin(), patterns.size()));
}

}  // namespace annulus::inline v0
