#include "base/mapped_file.h"

#include <fcntl.h>

#include "base/fail.h"

namespace annulus::base {

MappedFile::MappedFile(FileSystem& files, const std::string& path, std::int64_t max_bytes)
    : files_(files) {
  const auto check = [&](int code, const char* step) {
    if (code < 0) {
      fail(ErrorCode::kFile, "cannot {} '{}': {}", step, path, describe_errno(code));
    }
  };
  // Without O_NONBLOCK, opening a pipe that has no writer would block forever.
  const int file = files.open(kHere, path, O_RDONLY | O_NONBLOCK | O_NOCTTY, 0);
  check(file, "open");
  struct Closer {
    FileSystem& files;
    int file;
    ~Closer() { files.close(file); }
  } closer{files, file};
  FileSystem::Status status;
  check(files.status(file, &status), "examine");
  if (!status.regular) fail(ErrorCode::kInvalidFile, "'{}' is not a regular file", path);
  if (status.bytes > max_bytes) {
    fail(ErrorCode::kInvalidFile, "'{}' is larger than the {} bytes that are read from such a file",
         path, max_bytes);
  }
  if (status.bytes == 0) return;  // mmap refuses to map 0 bytes
  const void* data = nullptr;
  check(files.map(file, static_cast<std::size_t>(status.bytes), &data), "map");
  bytes_ = {static_cast<const std::byte*>(data), static_cast<std::size_t>(status.bytes)};
}

MappedFile::~MappedFile() {
  if (!bytes_.empty()) files_.unmap(bytes_.data(), bytes_.size());
}

}  // namespace annulus::base
