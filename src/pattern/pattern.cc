#include "annulus/pattern.h"

#include <algorithm>
#include <utility>

#include "base/fail.h"
#include "pattern/check_number.h"
#include "pattern/layout_file.h"
#include "pattern/node.h"

namespace annulus::inline v0 {
namespace {

using pattern::check_number;
using pattern::check_positions;
using pattern::Kind;
using pattern::Node;

Pattern leaf(Node node) { return Pattern(std::make_shared<const Node>(std::move(node))); }

Pattern blocks_leaf(std::shared_ptr<const BlockLayout> layout, std::string name) {
  const std::int64_t heads = layout->query_heads();
  return leaf({.kind = Kind::kBlocks,
               .layout = std::move(layout),
               .name = std::move(name),
               .heads = heads});
}

}  // namespace

Pattern::Pattern() : node_(std::make_shared<const Node>()) {}

Pattern::Pattern(std::shared_ptr<const detail::PatternNode> node) : node_(std::move(node)) {
  if (node_ == nullptr) base::fail(ErrorCode::kInvalidArgument, "a pattern needs a node, not null");
}

bool Pattern::visible(std::int64_t head, std::int64_t q, std::int64_t k,
                      const PatternContext& context) const {
  pattern::check_head(*node_, head);
  return pattern::visible(*node_, head, q, k, context);
}

std::int64_t Pattern::heads() const { return node_->heads; }

std::int64_t Pattern::distinct_heads(std::int64_t heads) const {
  return pattern::distinct_heads(*node_, heads);
}

std::vector<Pattern> Pattern::branches() const {
  if (node_->kind != Kind::kSum) return {*this};
  std::vector<Pattern> branches;
  for (const pattern::NodePointer& child : node_->children) branches.emplace_back(child);
  return branches;
}

bool operator==(const Pattern& a, const Pattern& b) { return pattern::equal(*a.node_, *b.node_); }

Pattern dense() { return Pattern(); }

Pattern causal() { return leaf({.kind = Kind::kCausal}); }

Pattern window(std::int64_t left, std::int64_t right) {
  check_number("window", "left", left, -1);
  check_number("window", "right", right, -1);
  return leaf({.kind = Kind::kWindow, .first = left, .second = right});
}

Pattern sink(std::int64_t n) {
  check_number("sink", "n", n, 0);
  return leaf({.kind = Kind::kSink, .first = n});
}

Pattern prefix(std::int64_t n) { return sink(n); }

Pattern global(std::int64_t n) {
  check_number("global", "n", n, 0);
  return leaf({.kind = Kind::kGlobalFirst, .first = n});
}

Pattern global(std::span<const std::int64_t> positions) {
  check_positions("global", positions);
  Node node{.kind = Kind::kGlobalListed, .list = {positions.begin(), positions.end()}};
  std::sort(node.list.begin(), node.list.end());
  node.list.erase(std::unique(node.list.begin(), node.list.end()), node.list.end());
  return leaf(std::move(node));
}

Pattern global(std::initializer_list<std::int64_t> positions) {
  return global(std::span<const std::int64_t>(positions.begin(), positions.size()));
}

Pattern documents(std::span<const std::int64_t> starts) {
  check_positions("documents", starts);
  for (std::size_t i = 1; i < starts.size(); ++i) {
    if (starts[i] <= starts[i - 1]) {
      base::fail(ErrorCode::kInvalidArgument,
                 "documents: start {} is {}, after {}; starts must ascend strictly", i, starts[i],
                 starts[i - 1]);
    }
  }
  return leaf({.kind = Kind::kDocuments, .list = {starts.begin(), starts.end()}});
}

Pattern documents(std::initializer_list<std::int64_t> starts) {
  return documents(std::span<const std::int64_t>(starts.begin(), starts.size()));
}

Pattern blocks(std::shared_ptr<const BlockLayout> layout) {
  if (layout == nullptr) base::fail(ErrorCode::kInvalidArgument, "blocks: the layout is null");
  layout->validate();
  std::string name = "#" + pattern::layout_digest(*layout).hex();
  return blocks_leaf(std::move(layout), std::move(name));
}

Pattern blocks(BlockLayout layout) {
  return blocks(std::make_shared<const BlockLayout>(std::move(layout)));
}

Pattern blocks(const std::string& path) {
  return blocks_leaf(std::make_shared<const BlockLayout>(load_layout(path)), path);
}

Pattern operator&(const Pattern& a, const Pattern& b) {
  return Pattern(pattern::combine(Kind::kAnd, {a.shared_node(), b.shared_node()}));
}

Pattern operator|(const Pattern& a, const Pattern& b) {
  return Pattern(pattern::combine(Kind::kOr, {a.shared_node(), b.shared_node()}));
}

Pattern operator~(const Pattern& a) { return Pattern(pattern::complement(a.shared_node())); }

}  // namespace annulus::inline v0
