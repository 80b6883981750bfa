#ifndef ANNULUS_PATTERN_BATCHES_H_
#define ANNULUS_PATTERN_BATCHES_H_

// What single batches see of a pattern with batches(...): trees without it, which everything that
// asks by intervals works on. Only the definition (node.h) and the code of a mask (mask_code.h)
// know the batch itself.

#include <cstdint>
#include <vector>

#include "annulus/pattern.h"
#include "pattern/node_pointer.h"

namespace annulus::pattern {

// The tree of one batch; the same object where batches do not differ. Requires: batch >= 0 where
// they do.
NodePointer of_batch(const NodePointer& node, std::int64_t batch);
// The tree of the batch that a context names. Throws as check_batch does.
Pattern of_batch(const Pattern& pattern, const PatternContext& context);

// The different trees among those of `batches` batches, each once, in the order in which batches
// come to them; at least one, also of no batches.
struct BatchPatterns {
  std::vector<Pattern> patterns;
  std::vector<std::int32_t> of_batch;  // [distinct_batches, at least 1]: which of them
};
BatchPatterns batch_patterns(const Pattern& pattern, std::int64_t batches);

// The pattern of problems of so many batches: without batches(...) where all of them see the same,
// as a single batch does.
Pattern for_batches(const Pattern& pattern, std::int64_t batches);

}  // namespace annulus::pattern

#endif  // ANNULUS_PATTERN_BATCHES_H_
