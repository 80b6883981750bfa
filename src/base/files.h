#ifndef ANNULUS_BASE_FILES_H_
#define ANNULUS_BASE_FILES_H_

// Reads and writes whole files. Every system call goes through a FileSystem, so that a test can
// make the n-th call fail. Paths are relative to an open folder or to the working directory
// (kHere). An open folder cannot be replaced by another one meanwhile.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace annulus::base {

inline constexpr int kHere = -100;  // AT_FDCWD

// The calls for reading and publishing files, with POSIX meaning: a negative result is -errno. The
// functions may be called from any thread.
class FileSystem {
 public:
  virtual ~FileSystem() = default;
  virtual int open(int folder, const std::string& path, int flags, unsigned mode);
  virtual std::int64_t read(int file, void* data, std::size_t bytes);
  virtual std::int64_t write(int file, const void* data, std::size_t bytes);
  virtual int sync(int file);
  virtual int truncate(int file, std::int64_t bytes);
  virtual int close(int file);
  virtual int rename(int folder, const std::string& from, const std::string& to);
  virtual int unlink(int folder, const std::string& path);
  virtual int make_folder(const std::string& path, unsigned mode);
  // The status of an open file, because a path could refer to another file when it is used.
  struct Status {
    bool folder = false;
    bool regular = false;
    unsigned owner = 0;
    unsigned mode = 0;  // permission bits
    std::int64_t bytes = 0;
    std::int64_t modified = 0;        // seconds since 1970
    std::int64_t modified_nanos = 0;  // the nanoseconds within the second
    std::uint64_t identity = 0;       // the file's number on its file system
  };
  virtual int status(int file, Status* status);
  // The names in a folder except "." and "..", in any order.
  virtual int list(int folder, std::vector<std::string>* names);
  virtual int lock(int file);  // exclusive flock; -EWOULDBLOCK if another holder has the lock
  // Releases the lock at once. Closing the file releases it only if no child of this process was
  // forked meanwhile: the child would have the same open file, and so the lock (flock(2)).
  virtual int unlock(int file);
  // Maps the first `bytes` > 0 bytes, read-only. The mapping stays when the file is closed.
  virtual int map(int file, std::size_t bytes, const void** data);
  virtual void unmap(const void* data, std::size_t bytes);
};

// The result of reading or writing: code 0, or -errno and the step that failed.
struct FileResult {
  int code = 0;
  const char* step = "";  // "open", "read", "create", "write", "sync", ...
  bool ok() const { return code == 0; }
};

// Reads a regular file. Returns -EFBIG if it is larger than max_bytes, -EINVAL if it is not a
// regular file, and -EPERM if `accept` is given and returns false for its status. A symbolic link
// as the last part of the path is followed only if the folder is kHere.
using AcceptStatus = bool (*)(const FileSystem::Status&);
FileResult try_read_file(FileSystem& files, int folder, const std::string& path,
                         std::int64_t max_bytes, std::vector<std::byte>* bytes,
                         AcceptStatus accept = nullptr);

// Checks a file's size and first bytes before the rest is read, because a sparse file can have any
// size at no cost. It is called without bytes first, and returns the number of first bytes that it
// needs. It is called again with these bytes until it needs no more. It throws if the size does not
// match the first bytes or the caller's limits.
using CheckHead =
    std::function<std::size_t(std::span<const std::byte> head, std::int64_t file_bytes)>;

// Writes to a temporary file in the same folder, synchronises it and renames it to `path`. So a
// reader sees the complete old or the complete new file, even after a crash of the process or the
// machine. After an error `path` is unchanged and the temporary file is removed. The name of a
// temporary file is ".annulus-" and 16 random digits. If a writer is killed, sweep_temporaries()
// removes its file.
FileResult try_write_file(FileSystem& files, int folder, const std::string& path,
                          std::span<const std::byte> bytes, unsigned mode);

// Removes the caller's temporary files that killed writers left in an open folder. A file is
// removed if it is an hour older than `newest`, a file in the folder that was just written. Its
// time is used because the file server's clock may differ by hours.
void sweep_temporaries(FileSystem& files, int folder, const std::string& newest);

// The time at which the file was last modified, in seconds since 1970, by the clock of the file
// server. No value if it cannot be determined.
std::optional<std::int64_t> modified_time(FileSystem& files, int folder, const std::string& path);

// Reading and writing for callers that need the file. They throw Error{kFile}. They throw
// Error{kInvalidFile} if the file is larger than max_bytes, or if it is not a regular file: a
// device or a pipe is never replaced. If the path is a link, its target is replaced.
std::vector<std::byte> read_file(FileSystem& files, const std::string& path,
                                 std::int64_t max_bytes);
// Reads a file like read_file(), but checks the head first, before max_bytes is checked. A file
// larger than half of the machine's memory is refused too. Also throws Error{kOutOfMemory}.
std::vector<std::byte> read_checked_file(FileSystem& files, const std::string& path,
                                         std::int64_t max_bytes, const CheckHead& check);
void write_file_atomically(FileSystem& files, const std::string& path,
                           std::span<const std::byte> bytes, unsigned mode = 0644);

// Throws now what write_file_atomically() would throw later. It is for long work whose result goes
// to a file. It does not change the file. The disk may still fill up later.
void check_can_write(FileSystem& files, const std::string& path);

// For example "No such file or directory" for -ENOENT.
std::string describe_errno(std::int64_t code);

}  // namespace annulus::base

#endif  // ANNULUS_BASE_FILES_H_
