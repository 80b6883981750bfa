// Converts lists of columns and diagonals for each head to a pattern and back.

#include <algorithm>
#include <limits>
#include <vector>

#include "base/fail.h"
#include "layout/entries.h"
#include "pattern/node.h"

namespace annulus::layout {
namespace {

// The entries of one head without padding.
std::vector<std::int64_t> entries_of(const char* name, std::span<const std::int32_t> list,
                                     std::int64_t width, std::int64_t head) {
  std::vector<std::int64_t> entries;
  for (std::int64_t i = 0; i < width; ++i) {
    const std::int64_t at = head * width + i;
    const std::int32_t entry = list[static_cast<std::size_t>(at)];
    if (entry == -1) continue;
    if (entry < 0) {
      base::fail(ErrorCode::kInvalidArgument, "{}[{}] is {}; it must be -1 (padding) or a position",
                 name, at, entry);
    }
    entries.push_back(entry);
  }
  std::sort(entries.begin(), entries.end());
  const auto twice = std::adjacent_find(entries.begin(), entries.end());
  if (twice != entries.end()) {
    base::fail(ErrorCode::kInvalidArgument, "{}: head {} has {} twice", name, head, *twice);
  }
  return entries;
}

std::int64_t width_of(const char* name, std::span<const std::int32_t> list, std::int64_t heads) {
  const auto width = static_cast<std::int64_t>(list.size()) / heads;
  check_count(name, list.size(), {heads, width});
  return width;
}

const pattern::leaves::VerticalSlash& leaf_of(const Pattern& pattern, std::int64_t head) {
  const pattern::Node* node = &pattern.node();
  if (node->kind == pattern::Kind::kHeads) {
    node = node->children[pattern::child_of_head(*node, head)].get();
  }
  const auto* leaf = std::get_if<pattern::leaves::VerticalSlash>(&node->leaf);
  if (node->kind != pattern::Kind::kLeaf || leaf == nullptr) {
    base::fail(ErrorCode::kUnsupported,
               "'{}' is not vertical_slash() for head {}; make a layout of it instead",
               pattern.to_string().substr(0, 200), head);
  }
  return *leaf;
}

void append(const std::vector<std::int64_t>& entries, std::size_t width,
            std::vector<std::int32_t>* list) {
  for (const std::int64_t entry : entries) {
    if (entry < 0 || entry > std::numeric_limits<std::int32_t>::max()) {
      base::fail(ErrorCode::kUnsupported, "vertical_slash has {}; the lists hold 0 to 2^31 - 1",
                 entry);
    }
    list->push_back(static_cast<std::int32_t>(entry));
  }
  list->resize(list->size() + width - entries.size(), -1);
}

}  // namespace
}  // namespace annulus::layout

namespace annulus::inline v0 {

Pattern from_vertical_slash(std::int64_t heads, std::span<const std::int32_t> verticals,
                            std::span<const std::int32_t> slashes) {
  if (heads < 1 || heads > pattern::kMaxLeaves) {
    base::fail(ErrorCode::kInvalidArgument, "lists of {} heads; give 1 to {}", heads,
               pattern::kMaxLeaves);
  }
  const std::int64_t columns = layout::width_of("verticals", verticals, heads);
  const std::int64_t diagonals = layout::width_of("slashes", slashes, heads);
  std::vector<Pattern> parts;
  for (std::int64_t head = 0; head < heads; ++head) {
    parts.push_back(vertical_slash(layout::entries_of("verticals", verticals, columns, head),
                                   layout::entries_of("slashes", slashes, diagonals, head)));
  }
  return annulus::heads(parts);
}

VerticalSlashArrays to_vertical_slash(const Pattern& pattern, std::int64_t heads) {
  if (heads < 1 || heads > pattern::kMaxLeaves) {
    base::fail(ErrorCode::kInvalidArgument, "lists of {} heads; give 1 to {}", heads,
               pattern::kMaxLeaves);
  }
  std::size_t columns = 0, diagonals = 0;
  for (std::int64_t head = 0; head < heads; ++head) {
    columns = std::max(columns, layout::leaf_of(pattern, head).columns.size());
    diagonals = std::max(diagonals, layout::leaf_of(pattern, head).slashes.size());
  }
  VerticalSlashArrays arrays;
  arrays.heads = heads;
  for (std::int64_t head = 0; head < heads; ++head) {
    const pattern::leaves::VerticalSlash& leaf = layout::leaf_of(pattern, head);
    layout::append(leaf.columns, columns, &arrays.verticals);
    layout::append(leaf.slashes, diagonals, &arrays.slashes);
  }
  return arrays;
}

}  // namespace annulus::inline v0
