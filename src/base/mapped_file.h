#ifndef ANNULUS_BASE_MAPPED_FILE_H_
#define ANNULUS_BASE_MAPPED_FILE_H_

// A file's bytes without a copy. If another process shortens the file, reading the missing part
// ends this process, as with every mapping. The writers of this library never change a file in
// place.

#include <cstddef>
#include <span>
#include <string>

#include "base/files.h"

namespace annulus::base {

class MappedFile {
 public:
  // A regular file, read only. Throws Error{kFile}, and Error{kInvalidFile} where it is larger than
  // max_bytes or no regular file. `files` must outlive it.
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
