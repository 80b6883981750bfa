#ifndef ANNULUS_LAYOUT_EXCHANGE_FILE_H_
#define ANNULUS_LAYOUT_EXCHANGE_FILE_H_

// Reads and writes files of the formats in annulus/layout.h. A file's head comes first: the
// size that it claims is compared with the size of the file and with what was asked for before
// anything else is read.

#include <cstdint>
#include <string>

#include "annulus/layout.h"
#include "base/files.h"

namespace annulus::layout {

// import_layout() through any file system.
BlockLayout read_exchange_file(base::FileSystem& files, const std::string& path,
                               LayoutFormat format, LayoutSizes sizes);

// export_layout() through any file system.
void write_exchange_file(base::FileSystem& files, const LayoutView& view, const std::string& path,
                         LayoutFormat format);

// Joins a size of the file with the one that was asked for. 0 means not stated. Throws
// Error{kInvalidFile} where both are stated and differ.
void agree(const char* name, std::int64_t of_file, const std::string& path, std::int64_t* size);

}  // namespace annulus::layout

#endif  // ANNULUS_LAYOUT_EXCHANGE_FILE_H_
