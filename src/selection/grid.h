#ifndef ANNULUS_SELECTION_GRID_H_
#define ANNULUS_SELECTION_GRID_H_

#include <cstdint>

#include "base/math.h"

namespace annulus::selection {

// The most CTAs of a grid in y and in z (CUDA C++ Programming Guide, technical specifications per
// compute capability).
constexpr std::int64_t kMaxGridY = 65535;
constexpr std::int64_t kMaxGridZ = 65535;

// The number of blocks that hold `count` items, if each block holds `each` items.
inline unsigned blocks_for(std::int64_t count, std::int64_t each) {
  return static_cast<unsigned>(base::ceil_div(count, each));
}

}  // namespace annulus::selection

#endif  // ANNULUS_SELECTION_GRID_H_
