#include "pattern/batches.h"

#include <algorithm>

#include "base/work.h"
#include "pattern/node.h"

namespace annulus::pattern {

NodePointer of_batch(const NodePointer& node, std::int64_t batch) {
  if (node->batches == 1) return node;
  if (node->kind == Kind::kBatches) {
    return of_batch(node->children[child_of_batch(*node, batch)], batch);
  }
  if (node->kind == Kind::kNot) return complement(of_batch(node->children.front(), batch));
  Node::Children children;
  for (const NodePointer& child : node->children) children.push_back(of_batch(child, batch));
  return combine(node->kind, children, node->group);
}

Pattern of_batch(const Pattern& pattern, const PatternContext& context) {
  check_batch(pattern.node(), context);
  return Pattern(of_batch(pattern.shared_node(), context.batch));
}

BatchPatterns batch_patterns(const Pattern& pattern, std::int64_t batches) {
  BatchPatterns all;
  const std::int64_t distinct = std::max<std::int64_t>(1, pattern.distinct_batches(batches));
  for (std::int64_t batch = 0; batch < distinct; ++batch) {
    // Trees that differ mostly do so in their first leaves, so a comparison is short.
    base::charge(4 * pattern.node().leaves + std::ssize(all.patterns));
    const Pattern one = pattern.of_batch(batch);
    const auto equal = std::find(all.patterns.begin(), all.patterns.end(), one);
    all.of_batch.push_back(static_cast<std::int32_t>(equal - all.patterns.begin()));
    if (equal == all.patterns.end()) all.patterns.push_back(one);
  }
  return all;
}

Pattern for_batches(const Pattern& pattern, std::int64_t batches) {
  if (pattern.node().batches == 1) return pattern;
  const BatchPatterns all = batch_patterns(pattern, batches);
  return all.patterns.size() == 1 ? all.patterns.front() : pattern;
}

}  // namespace annulus::pattern
