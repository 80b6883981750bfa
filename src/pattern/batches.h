#ifndef ANNULUS_PATTERN_BATCHES_H_
#define ANNULUS_PATTERN_BATCHES_H_

// The trees of single batches of a pattern with batches(...). These trees have no batches(...), and
// all code that evaluates by intervals uses them. Only the definition (node.h) and the code of a
// mask (mask_code.h) depend on the batch itself.

#include <cstdint>
#include <vector>

#include "annulus/pattern.h"
#include "pattern/node_pointer.h"

namespace annulus::pattern {

// The tree of one batch; it is the same object if batches do not differ. Requires: batch >= 0 if
// they do.
NodePointer of_batch(const NodePointer& node, std::int64_t batch);
// The tree of the batch that a context names. Throws the errors of check_batch.
Pattern of_batch(const Pattern& pattern, const PatternContext& context);

// The distinct trees of `batches` batches, each once, in the order in which batches first use them.
// There is at least one, even if `batches` is 0.
struct BatchPatterns {
  std::vector<Pattern> patterns;
  std::vector<std::int32_t> of_batch;  // [distinct_batches, at least 1]: the index of each batch's
                                       // tree
};
BatchPatterns batch_patterns(const Pattern& pattern, std::int64_t batches);

// The pattern of problems with this number of batches. It has no batches(...) if all of these
// batches see the same, as a single batch does.
Pattern for_batches(const Pattern& pattern, std::int64_t batches);

}  // namespace annulus::pattern

#endif  // ANNULUS_PATTERN_BATCHES_H_
