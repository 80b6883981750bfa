// The leaves with numbers of blocks, grids and lists, and the nodes that are no operators.
#include <algorithm>
#include <utility>

#include "annulus/pattern.h"
#include "base/fail.h"
#include "pattern/check_number.h"
#include "pattern/node.h"

namespace annulus::inline v0 {
namespace {

using pattern::check_number;
using pattern::check_positions;
using pattern::Kind;
using pattern::kMostNumber;
using pattern::Node;

Pattern leaf(Node node) { return Pattern(std::make_shared<const Node>(std::move(node))); }

std::vector<std::int64_t> as_set(const char* what, std::span<const std::int64_t> values) {
  check_positions(what, values);
  std::vector<std::int64_t> set(values.begin(), values.end());
  std::sort(set.begin(), set.end());
  set.erase(std::unique(set.begin(), set.end()), set.end());
  return set;
}

// Pattern has no default that may stand in a moved-from place: nodes are gathered instead.
Pattern combined(const char* name, Kind kind, std::span<const Pattern> patterns) {
  if (patterns.empty()) {
    base::fail(ErrorCode::kInvalidArgument, "{}() of nothing; give at least one pattern", name);
  }
  if (patterns.size() == 1) return patterns[0];
  Node::Children nodes;
  for (const Pattern& pattern : patterns) nodes.push_back(pattern.shared_node());
  return Pattern(pattern::combine(kind, nodes));
}

}  // namespace

Pattern dilated(std::int64_t r) {
  check_number("dilated", "r", r, 1);
  return leaf({.kind = Kind::kBand, .first = r, .second = -1, .third = 1});
}

Pattern block_dilated(std::int64_t r, std::int64_t b) {
  check_number("block_dilated", "r", r, 1);
  check_number("block_dilated", "b", b, 1);
  return leaf({.kind = Kind::kBand, .first = r, .second = -1, .third = b});
}

Pattern strided(std::int64_t s, std::int64_t n, std::int64_t b) {
  check_number("strided", "s", s, 1);
  check_number("strided", "n", n, 0);
  check_number("strided", "b", b, 1);
  return leaf({.kind = Kind::kStrided, .first = s, .second = n, .third = b});
}

Pattern random(std::int64_t c, std::int64_t seed, std::int64_t b) {
  check_number("random", "c", c, 0, pattern::kMostChosen);
  check_number("random", "seed", seed, 0);
  check_number("random", "b", b, 1);
  return leaf({.kind = Kind::kRandom, .first = c, .second = seed, .third = b, .period = 0});
}

Pattern segment(std::int64_t w, std::int64_t r) {
  check_number("segment", "w", w, 1);
  check_number("segment", "r", r, 1);
  return leaf({.kind = Kind::kSegment,
               .first = w,
               .second = r,
               .period = r > pattern::kMostPeriod ? 0 : r});
}

Pattern axial(std::int64_t height, std::int64_t width) {
  check_number("axial", "height", height, 1);
  check_number("axial", "width", width, 1);
  return leaf({.kind = Kind::kAxial, .first = height, .second = width});
}

Pattern natten(std::int64_t height, std::int64_t width, std::int64_t n) {
  check_number("natten", "height", height, 1);
  check_number("natten", "width", width, 1);
  check_number("natten", "n", n, 1);
  if (n % 2 == 0 || n > height || n > width) {
    base::fail(ErrorCode::kInvalidArgument,
               "natten: n is {} on a grid of {} x {}; it must be odd and at most either side", n,
               height, width);
  }
  return leaf({.kind = Kind::kNatten, .first = height, .second = width, .third = n});
}

Pattern vertical_slash(std::span<const std::int64_t> columns,
                       std::span<const std::int64_t> slashes) {
  return leaf({.kind = Kind::kVerticalSlash,
               .list = as_set("vertical_slash: columns", columns),
               .slashes = as_set("vertical_slash: slashes", slashes)});
}

Pattern vertical_slash(std::initializer_list<std::int64_t> columns,
                       std::initializer_list<std::int64_t> slashes) {
  return vertical_slash(std::span<const std::int64_t>(columns.begin(), columns.size()),
                        std::span<const std::int64_t>(slashes.begin(), slashes.size()));
}

Pattern hierarchical(std::span<const HierarchyLevel> levels) {
  if (levels.empty()) {
    base::fail(ErrorCode::kInvalidArgument, "hierarchical() without a level; give at least one");
  }
  Node::Children nodes;
  for (const HierarchyLevel& level : levels) {
    check_number("hierarchical", "stride", level.stride, 1);
    check_number("hierarchical", "window", level.window, -1);
    check_number("hierarchical", "b", level.block, 1);
    nodes.push_back(std::make_shared<const Node>(Node{
        .kind = Kind::kBand, .first = level.stride, .second = level.window, .third = level.block}));
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

Pattern sum(std::span<const Pattern> patterns) { return combined("sum", Kind::kSum, patterns); }

Pattern sum(std::initializer_list<Pattern> patterns) {
  return sum(std::span<const Pattern>(patterns.begin(), patterns.size()));
}

}  // namespace annulus::inline v0
