#ifndef ANNULUS_PATTERN_NODE_POINTER_H_
#define ANNULUS_PATTERN_NODE_POINTER_H_

// Declarations for code that only points to nodes of an expression tree. pattern/node.h, which
// defines nodes, includes the headers of all leaves.

#include <memory>

#include "annulus/pattern.h"

namespace annulus::pattern {

using Node = detail::PatternNode;
using NodePointer = std::shared_ptr<const Node>;

}  // namespace annulus::pattern

#endif  // ANNULUS_PATTERN_NODE_POINTER_H_
