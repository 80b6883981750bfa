#ifndef ANNULUS_BASE_FILES_H_
#define ANNULUS_BASE_FILES_H_

// Whole files in, whole files out. Every system call goes through a FileSystem so that a test can
// make the n-th one fail.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace annulus::base {

// The calls that reading and publishing files needs, with POSIX meaning: a negative return is
// -errno. Slots may be called from any thread.
class FileSystem {
 public:
  virtual ~FileSystem() = default;
  virtual int open(const std::string& path, int flags, unsigned mode);
  virtual std::int64_t read(int file, void* data, std::size_t bytes);
  virtual std::int64_t write(int file, const void* data, std::size_t bytes);
  virtual int sync(int file);
  virtual int close(int file);
  virtual int rename(const std::string& from, const std::string& to);
  virtual int unlink(const std::string& path);
  virtual int make_folder(const std::string& path, unsigned mode);
  // Of the file itself, not of what a symbolic link points to.
  struct Status {
    bool folder = false;
    bool link = false;
    unsigned owner = 0;
    unsigned mode = 0;  // permission bits
    std::int64_t bytes = 0;
  };
  virtual int status(const std::string& path, Status* status);
  virtual int lock(int file, bool wait);  // exclusive flock; -EWOULDBLOCK where taken and !wait
};

// Reads a regular file. Throws Error{kFile} when it cannot be opened or read and
// Error{kInvalidFile} when it is larger than most_bytes or not a regular file.
std::vector<std::byte> read_file(FileSystem& files, const std::string& path,
                                 std::int64_t most_bytes);

// Writes through a temporary of the same folder, synced and renamed over path: a reader sees the
// old file or the new one, whole. Throws Error{kFile}; then path is untouched and nothing is left.
void write_file_atomically(FileSystem& files, const std::string& path,
                           std::span<const std::byte> bytes, unsigned mode = 0644);

}  // namespace annulus::base

#endif  // ANNULUS_BASE_FILES_H_
