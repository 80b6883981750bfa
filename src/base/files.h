#ifndef ANNULUS_BASE_FILES_H_
#define ANNULUS_BASE_FILES_H_

// Whole files in, whole files out. Every system call goes through a FileSystem so that a test can
// make the n-th one fail. Paths are relative to a folder that is held open, or to the working
// directory (kHere): a folder that is held open cannot be swapped for another one meanwhile.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace annulus::base {

inline constexpr int kHere = -100;  // AT_FDCWD

// The calls that reading and publishing files needs, with POSIX meaning: a negative return is
// -errno. Slots may be called from any thread.
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
  // The status of an open file, since a path could name another file by the time it is used.
  struct Status {
    bool folder = false;
    bool regular = false;
    unsigned owner = 0;
    unsigned mode = 0;  // permission bits
    std::int64_t bytes = 0;
    std::int64_t modified = 0;        // seconds since 1970
    std::int64_t modified_nanos = 0;  // of the second
    std::uint64_t identity = 0;       // the file's number on its file system
  };
  virtual int status(int file, Status* status);
  // The names in a folder except "." and "..", in no order.
  virtual int list(int folder, std::vector<std::string>* names);
  virtual int lock(int file);  // exclusive flock; -EWOULDBLOCK where another process has it
  // Ends the lock at once. Closing the file does so only where no child of this process was forked
  // meanwhile, which holds the same open file, and with it the lock (flock(2)).
  virtual int unlock(int file);
  // The first `bytes` of a file, read only; they stay when it is closed. Requires: bytes > 0.
  virtual int map(int file, std::size_t bytes, const void** data);
  virtual void unmap(const void* data, std::size_t bytes);
};

// The result of reading or writing: code 0, or -errno and the step that failed.
struct FileResult {
  int code = 0;
  const char* step = "";  // "open", "read", "create", "write", "sync", ...
  bool ok() const { return code == 0; }
};

// Reads a regular file. -EFBIG where it is larger than max_bytes, -EINVAL where it is no regular
// file and -EPERM where `accept` is given and says no to its status; a symbolic link as the last
// part of the path is followed only from kHere.
using AcceptStatus = bool (*)(const FileSystem::Status&);
FileResult try_read_file(FileSystem& files, int folder, const std::string& path,
                         std::int64_t max_bytes, std::vector<std::byte>* bytes,
                         AcceptStatus accept = nullptr);

// Looks at a file's size and first bytes before the others are read, since a sparse file has any
// size at no cost. It is called without bytes first and returns how many first bytes it must see;
// it is called again with those until it must see no more. It throws where the size is not what
// the first bytes or the caller's wishes need.
using CheckHead =
    std::function<std::size_t(std::span<const std::byte> head, std::int64_t file_bytes)>;

// Writes through a temporary of the same folder, synced and renamed over path: a reader sees the
// old file or the new one, whole, also after a crash of this process or of the machine. On an error
// path is untouched and the temporary is removed. Temporaries are named ".annulus-" and 16
// random digits. A killed writer leaves one behind, which sweep_temporaries() removes.
FileResult try_write_file(FileSystem& files, int folder, const std::string& path,
                          std::span<const std::byte> bytes, unsigned mode);

// Removes the temporaries of the caller in an open folder that killed writers left behind: those
// that are an hour older than `newest`, a file of the folder that was written just now. The time is
// taken from that file because a clock of this machine may be hours from the clock of the machine
// which keeps the files.
void sweep_temporaries(FileSystem& files, int folder, const std::string& newest);

// When the file was modified last, in seconds since 1970, by the clock of who keeps the files;
// empty where that cannot be found out.
std::optional<std::int64_t> modified_time(FileSystem& files, int folder, const std::string& path);

// Reading and writing for callers that cannot go on without the file. They throw Error{kFile}, or
// Error{kInvalidFile} when the file is larger than max_bytes or no regular file: a device or a pipe
// is never replaced. Where the path is a link, the file that it leads to is replaced.
std::vector<std::byte> read_file(FileSystem& files, const std::string& path,
                                 std::int64_t max_bytes);
// With a check of the head, which comes before that of max_bytes. A file larger than half of the
// machine's memory is refused as one larger than max_bytes is. Throws Error{kOutOfMemory} too.
std::vector<std::byte> read_checked_file(FileSystem& files, const std::string& path,
                                         std::int64_t max_bytes, const CheckHead& check);
void write_file_atomically(FileSystem& files, const std::string& path,
                           std::span<const std::byte> bytes, unsigned mode = 0644);

// Throws now what write_file_atomically would throw later, for long work whose result goes to a
// file. It leaves the file as it is, and the disk may still fill up meanwhile.
void check_can_write(FileSystem& files, const std::string& path);

// "No such file or directory" for -ENOENT.
std::string describe_errno(std::int64_t code);

}  // namespace annulus::base

#endif  // ANNULUS_BASE_FILES_H_
