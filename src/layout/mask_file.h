#ifndef ANNULUS_LAYOUT_MASK_FILE_H_
#define ANNULUS_LAYOUT_MASK_FILE_H_

// Files with one byte for each block: NumPy's format, and bytes without a header.

#include <string>

#include "annulus/layout.h"
#include "base/files.h"

namespace annulus::layout {

// Requires: kNpy or kRaw. Throws Error{kFile}, Error{kInvalidFile}, Error{kOutOfMemory}, and
// Error{kInvalidArgument} in the same cases as from_mask().
BlockLayout read_mask(base::FileSystem& files, const std::string& path, LayoutFormat format,
                      LayoutSizes sizes);

}  // namespace annulus::layout

#endif  // ANNULUS_LAYOUT_MASK_FILE_H_
