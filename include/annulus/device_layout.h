#ifndef ANNULUS_DEVICE_LAYOUT_H_
#define ANNULUS_DEVICE_LAYOUT_H_

// The blocks of a pattern, found by kernels on a device.

#include "annulus/device.h"
#include "annulus/layout.h"

namespace annulus::inline v0 {

// The layout that make_layout (annulus/layout.h) makes on the host, bit for bit. A block is
// classified by its ranges of positions where causal, windows, sinks, first globals, documents and
// leaves of blocks allow that, and pair by pair where they do not. So it is worth its time for
// patterns whose blocks are mixed in other ways, and on GPUs that are idle. Compiles a kernel for
// each structure of an expression, uses the default stream, allocates on the device and waits.
// Throws Error{kInvalidArgument} as make_layout, Error{kUnsupported} for a sum, for blocks(), for
// lengths above 2^30 and for more than 2^28 random choices, Error{kOutOfMemory}, Error{kCompile},
// Error{kDevice}.
ANNULUS_EXPORT BlockLayout make_layout(const Device& device, const Pattern& pattern,
                                       const LayoutSizes& sizes, const LayoutOptions& options = {});

}  // namespace annulus::inline v0

#endif  // ANNULUS_DEVICE_LAYOUT_H_
