#ifndef ANNULUS_LAYOUT_EXCHANGE_FILE_H_
#define ANNULUS_LAYOUT_EXCHANGE_FILE_H_

// Reads and writes files of the formats in annulus/layout.h. The head of a file is read first. The
// size in it is compared with the size of the file and with the sizes that the caller expects,
// before anything else is read.

#include <cstdint>
#include <string>

#include "annulus/layout.h"
#include "base/files.h"

namespace annulus::layout {

// Like import_layout(), with any file system.
BlockLayout read_exchange_file(base::FileSystem& files, const std::string& path,
                               LayoutFormat format, LayoutSizes sizes);

// Like export_layout(), with any file system.
void write_exchange_file(base::FileSystem& files, const LayoutView& view, const std::string& path,
                         LayoutFormat format);

// Compares a size of the file with the size that the caller expects, and stores it. 0 means not
// stated. Throws Error{kInvalidFile} if both are stated and differ.
void agree(const char* name, std::int64_t of_file, const std::string& path, std::int64_t* size);

}  // namespace annulus::layout

#endif  // ANNULUS_LAYOUT_EXCHANGE_FILE_H_
