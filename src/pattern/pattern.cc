#include "annulus/pattern.h"

#include <algorithm>
#include <utility>

#include "base/fail.h"
#include "pattern/batches.h"
#include "pattern/node.h"

namespace annulus::inline v0 {
using pattern::Kind;
using pattern::Node;

Pattern::Pattern() : node_(std::make_shared<const Node>()) {}

Pattern::Pattern(std::shared_ptr<const detail::PatternNode> node) : node_(std::move(node)) {
  if (node_ == nullptr) base::fail(ErrorCode::kInvalidArgument, "a pattern needs a node, not null");
}

bool Pattern::visible(std::int64_t head, std::int64_t q, std::int64_t k,
                      const PatternContext& context) const {
  pattern::check_head(*node_, head);
  pattern::check_batch(*node_, context);
  return pattern::visible(*node_, head, q, k, context);
}

std::int64_t Pattern::heads() const { return node_->heads; }

std::int64_t Pattern::distinct_heads(std::int64_t heads) const {
  return pattern::distinct_heads(*node_, heads);
}

std::int64_t Pattern::batches() const { return node_->batches; }

std::int64_t Pattern::distinct_batches(std::int64_t batches) const {
  return std::min(batches, node_->batches);
}

Pattern Pattern::of_batch(std::int64_t batch) const {
  pattern::check_batch(*node_, {.batch = batch});
  return Pattern(pattern::of_batch(node_, batch));
}

std::vector<Pattern> Pattern::branches() const {
  if (node_->kind != Kind::kSum) return {*this};
  std::vector<Pattern> branches;
  for (const pattern::NodePointer& child : node_->children) branches.emplace_back(child);
  return branches;
}

bool operator==(const Pattern& a, const Pattern& b) { return pattern::equal(*a.node_, *b.node_); }

Pattern operator&(const Pattern& a, const Pattern& b) {
  return Pattern(pattern::combine(Kind::kAnd, {a.shared_node(), b.shared_node()}));
}

Pattern operator|(const Pattern& a, const Pattern& b) {
  return Pattern(pattern::combine(Kind::kOr, {a.shared_node(), b.shared_node()}));
}

Pattern operator~(const Pattern& a) { return Pattern(pattern::complement(a.shared_node())); }

}  // namespace annulus::inline v0
