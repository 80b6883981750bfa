#include "base/files.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <new>
#include <system_error>

#include "base/fail.h"

namespace annulus::base {
namespace {

static_assert(kHere == AT_FDCWD);

// Calls that a signal interrupts are repeated. After this many interruptions the call counts as
// failed.
constexpr int kMaxInterruptions = 1000;
// Names have 64 random bits, so a few attempts are enough to find an unused name.
constexpr int kMaxNames = 8;
constexpr char kTemporaryPrefix[] = ".annulus-";

int result(int value) { return value < 0 ? -errno : value; }

template <typename Call>
auto uninterrupted(Call call) {
  auto code = call();
  for (int i = 0; code == -EINTR && i < kMaxInterruptions; ++i) code = call();
  return code;
}

// The name is random instead of counted. Two containers that share a folder may have the same
// process ids, and the successor of a killed container would count up to the name of the file that
// the killed one left.
std::string temporary_name(const std::string& path) {
  std::uint64_t number = 0;
  if (getrandom(&number, sizeof(number), GRND_NONBLOCK) != sizeof(number)) {
    number =
        static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
    number = (number ^ (static_cast<std::uint64_t>(getpid()) << 40)) * 0x9E3779B97F4A7C15u;
  }
  const std::size_t slash = path.rfind('/');
  const std::string folder = slash == std::string::npos ? "" : path.substr(0, slash + 1);
  return fmt::format("{}{}{:016x}.tmp", folder, kTemporaryPrefix, number);
}

// Creates an empty file with a new name in the folder of `path`. Returns -errno if that fails.
int create_temporary(FileSystem& files, int folder, const std::string& path, unsigned mode,
                     std::string* name) {
  int file = -EEXIST;
  for (int i = 0; file == -EEXIST && i < kMaxNames; ++i) {
    *name = temporary_name(path);
    file = uninterrupted(
        [&] { return files.open(folder, *name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, mode); });
  }
  return file;
}

}  // namespace

// openat() may wait for a network file system, so a signal may interrupt it.
int FileSystem::open(int folder, const std::string& path, int flags, unsigned mode) {
  return uninterrupted(
      [&] { return result(::openat(folder, path.c_str(), flags | O_CLOEXEC, mode)); });
}
std::int64_t FileSystem::read(int file, void* data, std::size_t bytes) {
  const ssize_t count = ::read(file, data, bytes);
  return count < 0 ? -errno : count;
}
std::int64_t FileSystem::write(int file, const void* data, std::size_t bytes) {
  const ssize_t count = ::write(file, data, bytes);
  return count < 0 ? -errno : count;
}
int FileSystem::truncate(int file, std::int64_t bytes) {
  return uninterrupted([&] { return result(::ftruncate(file, bytes)); });
}
int FileSystem::sync(int file) { return result(::fsync(file)); }
int FileSystem::close(int file) { return result(::close(file)); }
int FileSystem::rename(int folder, const std::string& from, const std::string& to) {
  return result(::renameat(folder, from.c_str(), folder, to.c_str()));
}
int FileSystem::unlink(int folder, const std::string& path) {
  return result(::unlinkat(folder, path.c_str(), 0));
}
int FileSystem::make_folder(const std::string& path, unsigned mode) {
  return uninterrupted([&] { return result(::mkdir(path.c_str(), mode)); });
}
int FileSystem::status(int file, Status* status) {
  struct stat found;
  const int code = uninterrupted([&] { return result(::fstat(file, &found)); });
  if (code < 0) return code;
  *status = {.folder = S_ISDIR(found.st_mode),
             .regular = S_ISREG(found.st_mode),
             .owner = found.st_uid,
             .mode = found.st_mode & 07777u,
             .bytes = found.st_size,
             .modified = found.st_mtime,
             .modified_nanos = found.st_mtim.tv_nsec,
             .identity = found.st_ino};
  return 0;
}
int FileSystem::list(int folder, std::vector<std::string>* names) {
  // closedir() closes its descriptor, so it gets a duplicate.
  const int copy = FileSystem::open(folder, ".", O_RDONLY | O_DIRECTORY, 0);
  if (copy < 0) return copy;
  DIR* opened = nullptr;
  const int code = uninterrupted([&] {
    opened = fdopendir(copy);
    return opened == nullptr ? -errno : 0;
  });
  if (opened == nullptr) {
    ::close(copy);
    return code;
  }
  const std::unique_ptr<DIR, int (*)(DIR*)> listing(opened, closedir);
  names->clear();
  while (true) {
    errno = 0;  // null means the end or an error, and only errno distinguishes them
    const dirent* entry = readdir(listing.get());
    if (!entry) return -errno;
    const std::string name = entry->d_name;
    if (name != "." && name != "..") names->push_back(name);
  }
}
int FileSystem::lock(int file) {
  return uninterrupted([&] { return result(::flock(file, LOCK_EX | LOCK_NB)); });
}
int FileSystem::unlock(int file) { return result(::flock(file, LOCK_UN)); }
int FileSystem::map(int file, std::size_t bytes, const void** data) {
  void* mapped = ::mmap(nullptr, bytes, PROT_READ, MAP_PRIVATE, file, 0);
  if (mapped == MAP_FAILED) return -errno;
  *data = mapped;
  return 0;
}
void FileSystem::unmap(const void* data, std::size_t bytes) {
  ::munmap(const_cast<void*>(data), bytes);
}

namespace {

// Reads more bytes after the first *used ones until the buffer is full or the file ends. Returns
// -errno if that fails.
int fill(FileSystem& files, int file, std::vector<std::byte>* bytes, std::size_t* used) {
  while (*used < bytes->size()) {
    const std::int64_t count = uninterrupted(
        [&] { return files.read(file, bytes->data() + *used, bytes->size() - *used); });
    if (count < 0) return static_cast<int>(count);
    if (count == 0) break;
    *used += static_cast<std::size_t>(count);
  }
  return 0;
}

// Passes to `check` the first bytes that it needs. Returns -errno if they cannot be read.
int read_head(FileSystem& files, int file, std::int64_t file_bytes, const CheckHead& check,
              std::vector<std::byte>* bytes, std::size_t* used) {
  while (true) {
    const std::size_t wanted = check(std::span(*bytes).first(*used), file_bytes);
    if (wanted <= *used) return 0;
    bytes->resize(std::min(wanted, static_cast<std::size_t>(file_bytes)));
    const int code = fill(files, file, bytes, used);
    // The file has become shorter. The caller detects that when it has read all of it.
    if (code < 0 || *used < wanted) return code;
  }
}

FileResult read_whole(FileSystem& files, int folder, const std::string& path,
                      std::int64_t max_bytes, AcceptStatus accept, const CheckHead& check,
                      std::vector<std::byte>* bytes) {
  // Without O_NONBLOCK, opening a pipe that has no writer would block forever.
  const int flags = O_RDONLY | O_NONBLOCK | O_NOCTTY | (folder == kHere ? 0 : O_NOFOLLOW);
  const int file = uninterrupted([&] { return files.open(folder, path, flags, 0); });
  if (file < 0) return {file, "open"};
  struct Closer {
    FileSystem& files;
    int file;
    ~Closer() { files.close(file); }
  } closer{files, file};
  FileSystem::Status status;
  const int examined = uninterrupted([&] { return files.status(file, &status); });
  if (examined < 0) return {examined, "examine"};
  if (!status.regular) return {-EINVAL, "read"};
  if (accept != nullptr && !accept(status)) return {-EPERM, "trust"};
  std::size_t used = 0;
  bytes->clear();
  if (check) {
    const int code = read_head(files, file, status.bytes, check, bytes, &used);
    if (code < 0) return {code, "read"};
    max_bytes = std::min(max_bytes, status.bytes);
  }
  if (status.bytes > max_bytes) return {-EFBIG, "read"};
  // The stated size may be wrong or change meanwhile, so one more byte is requested, and the buffer
  // grows as long as there are more bytes.
  bytes->resize(static_cast<std::size_t>(std::max<std::int64_t>(status.bytes, 0)) + 1);
  while (true) {
    const int code = fill(files, file, bytes, &used);
    if (code < 0) return {code, "read"};
    if (static_cast<std::int64_t>(used) > max_bytes) return {-EFBIG, "read"};
    if (used < bytes->size()) break;
    bytes->resize(used * 2);
  }
  bytes->resize(used);
  return {};
}

}  // namespace

FileResult try_read_file(FileSystem& files, int folder, const std::string& path,
                         std::int64_t max_bytes, std::vector<std::byte>* bytes,
                         AcceptStatus accept) {
  return read_whole(files, folder, path, max_bytes, accept, {}, bytes);
}

FileResult try_write_file(FileSystem& files, int folder, const std::string& path,
                          std::span<const std::byte> bytes, unsigned mode) {
  std::string temporary;
  const int file = create_temporary(files, folder, path, mode, &temporary);
  if (file < 0) return {file, "create"};
  const auto write = [&]() -> FileResult {
    for (std::size_t written = 0; written < bytes.size();) {
      const std::int64_t count = uninterrupted(
          [&] { return files.write(file, bytes.data() + written, bytes.size() - written); });
      if (count <= 0) return {count == 0 ? -ENOSPC : static_cast<int>(count), "write"};
      written += static_cast<std::size_t>(count);
    }
    const int code = uninterrupted([&] { return files.sync(file); });
    // EINVAL means that the file system cannot synchronise, which is not an error of this file.
    return {code == -EINVAL ? 0 : code, "sync"};
  };
  FileResult outcome = write();
  // The descriptor is closed exactly once: Linux has released it even if close() fails with EINTR.
  // A network file system may report an earlier failed write here.
  const int closed = files.close(file);
  if (outcome.ok() && closed < 0 && closed != -EINTR) outcome = {closed, "close"};
  if (outcome.ok()) {
    outcome = {uninterrupted([&] { return files.rename(folder, temporary, path); }), "rename"};
  }
  if (!outcome.ok()) uninterrupted([&] { return files.unlink(folder, temporary); });
  return outcome;
}

std::optional<std::int64_t> modified_time(FileSystem& files, int folder, const std::string& path) {
  const int file = files.open(folder, path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0);
  if (file < 0) return std::nullopt;
  FileSystem::Status status;
  const int code = files.status(file, &status);
  files.close(file);
  return code < 0 ? std::nullopt : std::optional(status.modified);
}

void sweep_temporaries(FileSystem& files, int folder, const std::string& newest) {
  constexpr std::int64_t kAbandonedSeconds = 3600;  // writing takes much less time
  std::vector<std::string> names;
  if (files.list(folder, &names) < 0) return;
  std::erase_if(names, [](const std::string& name) { return !name.starts_with(kTemporaryPrefix); });
  if (names.empty()) return;
  const std::optional<std::int64_t> now = modified_time(files, folder, newest);
  if (!now) return;
  for (const std::string& name : names) {
    const int file = files.open(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0);
    if (file < 0) continue;
    FileSystem::Status status;
    const int code = files.status(file, &status);
    files.close(file);
    const bool own = code >= 0 && status.regular && status.owner == geteuid();
    if (own && *now - status.modified > kAbandonedSeconds) files.unlink(folder, name);
  }
}

std::string describe_errno(std::int64_t code) {
  return std::generic_category().message(static_cast<int>(code < 0 ? -code : code));
}

namespace {

void throw_unless_read(const FileResult& outcome, const std::string& path, std::int64_t max_bytes) {
  if (outcome.code == -EFBIG) {
    fail(ErrorCode::kInvalidFile, "'{}' is larger than the {} bytes that are read from such a file",
         path, max_bytes);
  }
  if (outcome.code == -EINVAL) {
    fail(ErrorCode::kInvalidFile, "'{}' is not a regular file", path);
  }
  if (!outcome.ok()) {
    fail(ErrorCode::kFile, "cannot {} '{}': {}", outcome.step, path, describe_errno(outcome.code));
  }
}

}  // namespace

std::vector<std::byte> read_file(FileSystem& files, const std::string& path,
                                 std::int64_t max_bytes) {
  std::vector<std::byte> bytes;
  throw_unless_read(try_read_file(files, kHere, path, max_bytes, &bytes), path, max_bytes);
  return bytes;
}

std::vector<std::byte> read_checked_file(FileSystem& files, const std::string& path,
                                         std::int64_t max_bytes, const CheckHead& check) {
  // A sparse file can have any size at no cost, so a size over half of the machine's memory is
  // refused before memory is allocated.
  const std::int64_t memory = std::int64_t{sysconf(_SC_PHYS_PAGES)} * sysconf(_SC_PAGESIZE);
  if (memory > 0) max_bytes = std::min(max_bytes, memory / 2);
  std::vector<std::byte> bytes;
  try {
    throw_unless_read(read_whole(files, kHere, path, max_bytes, nullptr, check, &bytes), path,
                      max_bytes);
  } catch (const std::bad_alloc&) {
    fail(ErrorCode::kOutOfMemory, "no memory to read '{}'", path);
  }
  return bytes;
}

namespace {

// The path to rename to: the target of a link, because a rename would replace the link itself. A
// device such as /dev/null must not be replaced either.
std::string resolve_target(FileSystem& files, const std::string& path) {
  if (path.empty() || path.back() == '/') {
    fail(ErrorCode::kInvalidFile, "'{}' names no file to write to", path);
  }
  std::string target = path;
  if (char* resolved = ::realpath(path.c_str(), nullptr); resolved != nullptr) {
    target = resolved;
    std::free(resolved);
  }
  if (const int found = files.open(kHere, target, O_PATH, 0); found >= 0) {
    FileSystem::Status status;
    const int examined = files.status(found, &status);
    files.close(found);
    if (examined == 0 && !status.regular) {
      fail(ErrorCode::kInvalidFile, "'{}' is not a regular file; give another file to write to",
           path);
    }
  }
  return target;
}

[[noreturn]] void fail_to_write(const FileResult& outcome, const std::string& path) {
  fail(ErrorCode::kFile, "cannot {} '{}' or the temporary file next to it: {}", outcome.step, path,
       describe_errno(outcome.code));
}

}  // namespace

void check_can_write(FileSystem& files, const std::string& path) {
  std::string temporary;
  const int file = create_temporary(files, kHere, resolve_target(files, path), 0600, &temporary);
  if (file < 0) fail_to_write({file, "create"}, path);
  files.close(file);
  uninterrupted([&] { return files.unlink(kHere, temporary); });
}

void write_file_atomically(FileSystem& files, const std::string& path,
                           std::span<const std::byte> bytes, unsigned mode) {
  const FileResult outcome = try_write_file(files, kHere, resolve_target(files, path), bytes, mode);
  if (!outcome.ok()) fail_to_write(outcome, path);
}

}  // namespace annulus::base
