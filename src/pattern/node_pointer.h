#ifndef ANNULUS_PATTERN_NODE_POINTER_H_
#define ANNULUS_PATTERN_NODE_POINTER_H_

// Names for what only points to nodes of an expression tree. pattern/node.h, which defines them,
// brings all leaves with it.

#include <memory>

#include "annulus/pattern.h"

namespace annulus::pattern {

using Node = detail::PatternNode;
using NodePointer = std::shared_ptr<const Node>;

}  // namespace annulus::pattern

#endif  // ANNULUS_PATTERN_NODE_POINTER_H_
