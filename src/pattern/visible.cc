// Evaluates one pair, and defines how operators join the results of their operands.
#include <algorithm>

#include "base/fail.h"
#include "pattern/node.h"

namespace annulus::pattern {

bool visible(const Node& node, std::int64_t head, std::int64_t q, std::int64_t k,
             const PatternContext& context) {
  const auto child_sees = [&](const NodePointer& child) {
    return visible(*child, head, q, k, context);
  };
  switch (node.kind) {
    case Kind::kLeaf:
      return leaves::visible(node.leaf, {head, q, k, context});
    case Kind::kNot:
      return !child_sees(node.children.front());
    case Kind::kAnd:
      return std::all_of(node.children.begin(), node.children.end(), child_sees);
    case Kind::kOr:
    case Kind::kHierarchical:
    case Kind::kSum:
      return std::any_of(node.children.begin(), node.children.end(), child_sees);
    case Kind::kHeads:
      return child_sees(node.children[child_of_head(node, head)]);
    case Kind::kBatches:
      return child_sees(node.children[child_of_batch(node, context.batch)]);
  }
  base::fail(ErrorCode::kInternal, "unknown kind of pattern node: {}", static_cast<int>(node.kind));
}

}  // namespace annulus::pattern
