#ifndef ANNULUS_PATTERN_MASK_PARTS_H_
#define ANNULUS_PATTERN_MASK_PARTS_H_

// The walk through an expression that makes a mask of it: a text (mask_code.cc) or a program
// (attention/kernels/mask_program.cc).

#include "base/fail.h"
#include "pattern/node.h"

namespace annulus::pattern {

// Returns the result of `writer` for a node: writer.leaf(node), complement(child), chain(node) of
// an & or an |, or turns(node) of heads or batches. Throws Error{kUnsupported} for a sum.
template <typename Writer>
auto write_part(Writer& writer, const Node& node) {
  switch (node.kind) {
    case Kind::kLeaf:
      return writer.leaf(node);
    case Kind::kNot:
      return writer.complement(*node.children.front());
    case Kind::kAnd:
    case Kind::kOr:
    case Kind::kHierarchical:
      return writer.chain(node);
    case Kind::kHeads:
    case Kind::kBatches:
      return writer.turns(node);
    case Kind::kSum:
      base::fail(ErrorCode::kUnsupported,
                 "sum(...) is not one mask: its branches run one after another");
  }
  base::fail(ErrorCode::kInternal, "a pattern node of kind {}", static_cast<int>(node.kind));
}

}  // namespace annulus::pattern

#endif  // ANNULUS_PATTERN_MASK_PARTS_H_
