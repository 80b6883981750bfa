#ifndef ANNULUS_BASE_MAPPED_FILE_H_
#define ANNULUS_BASE_MAPPED_FILE_H_

// The bytes of a file without a copy. As with every mapping, if another process shortens the file,
// reading the missing part ends this process. This library never changes a file in place when it
// writes.

#include <cstddef>
#include <span>
#include <string>

#include "base/files.h"

namespace annulus::base {

class MappedFile {
 public:
  // Maps a regular file, read-only. Throws Error{kFile}, and Error{kInvalidFile} if the file is
  // larger than max_bytes or not a regular file. `files` must outlive this object.
  MappedFile(FileSystem& files, const std::string& path, std::int64_t max_bytes);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  std::span<const std::byte> bytes() const { return bytes_; }

 private:
  FileSystem& files_;
  std::span<const std::byte> bytes_;
};

}  // namespace annulus::base

#endif  // ANNULUS_BASE_MAPPED_FILE_H_
