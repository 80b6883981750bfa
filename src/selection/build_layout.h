#ifndef ANNULUS_SELECTION_BUILD_LAYOUT_H_
#define ANNULUS_SELECTION_BUILD_LAYOUT_H_

// Makes a pattern's BlockLayout with kernels. The arrays are the same, bit for bit, as the arrays
// of layout::make_layout on the host. A kernel classifies a block by what the expression determines
// for the block's ranges of positions, and pair by pair if that does not decide. The host
// classifies by intervals.

#include "annulus/layout.h"
#include "device/buffer.h"
#include "jit/kernel_cache.h"

namespace annulus::selection {

// Throws the errors that make_layout in annulus/layout.h lists.
BlockLayout build_layout(const device::ContextPointer& context, jit::KernelCache& kernels,
                         jit::Arch arch, const Pattern& pattern, const LayoutSizes& sizes,
                         std::int64_t layer);

}  // namespace annulus::selection

#endif  // ANNULUS_SELECTION_BUILD_LAYOUT_H_
