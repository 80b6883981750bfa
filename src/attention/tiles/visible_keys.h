#ifndef ANNULUS_ATTENTION_TILES_VISIBLE_KEYS_H_
#define ANNULUS_ATTENTION_TILES_VISIBLE_KEYS_H_

// Which rows of K and V a problem needs.

#include "annulus/problem.h"
#include "pattern/classify.h"

namespace annulus::attention {

// The rows of K and V from the first to the last key that any query of any head and batch sees.
// Kernels read no others. Empty if no query sees a key.
pattern::Interval visible_keys(const Problem& problem, const pattern::Placement& placement);

}  // namespace annulus::attention

#endif  // ANNULUS_ATTENTION_TILES_VISIBLE_KEYS_H_
