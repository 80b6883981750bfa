#ifndef ANNULUS_SELECTION_BUILD_LAYOUT_H_
#define ANNULUS_SELECTION_BUILD_LAYOUT_H_

// A pattern's BlockLayout made by kernels: the same arrays, bit for bit, as layout::make_layout's
// on the host. A kernel classifies a block by what the expression says for certain about the
// block's ranges of positions, and pair by pair where that does not decide; the host classifies by
// intervals.

#include "annulus/layout.h"
#include "device/buffer.h"
#include "jit/kernel_cache.h"

namespace annulus::selection {

// Throws as make_layout in annulus/layout.h says.
BlockLayout build_layout(const device::ContextPointer& context, jit::KernelCache& kernels,
                         jit::Arch arch, const Pattern& pattern, const LayoutSizes& sizes,
                         std::int64_t layer);

}  // namespace annulus::selection

#endif  // ANNULUS_SELECTION_BUILD_LAYOUT_H_
