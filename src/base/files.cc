#include "base/files.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "base/fail.h"

namespace annulus::base {
namespace {

int result(int value) { return value < 0 ? -errno : value; }

// A name that no other thread or process uses: rename needs the temporary in the same folder.
std::string temporary_name(const std::string& path) {
  static std::atomic<std::uint64_t> counter{0};
  return fmt::format("{}.{}.{}.tmp", path, getpid(), counter.fetch_add(1));
}

}  // namespace

int FileSystem::open(const std::string& path, int flags, unsigned mode) {
  return result(::open(path.c_str(), flags | O_CLOEXEC, mode));
}
std::int64_t FileSystem::read(int file, void* data, std::size_t bytes) {
  const ssize_t count = ::read(file, data, bytes);
  return count < 0 ? -errno : count;
}
std::int64_t FileSystem::write(int file, const void* data, std::size_t bytes) {
  const ssize_t count = ::write(file, data, bytes);
  return count < 0 ? -errno : count;
}
int FileSystem::sync(int file) { return result(::fsync(file)); }
int FileSystem::close(int file) { return result(::close(file)); }
int FileSystem::rename(const std::string& from, const std::string& to) {
  return result(::rename(from.c_str(), to.c_str()));
}
int FileSystem::unlink(const std::string& path) { return result(::unlink(path.c_str())); }
int FileSystem::make_folder(const std::string& path, unsigned mode) {
  return result(::mkdir(path.c_str(), mode));
}
int FileSystem::status(const std::string& path, Status* status) {
  struct stat found;
  if (lstat(path.c_str(), &found) != 0) return -errno;
  *status = {.folder = S_ISDIR(found.st_mode),
             .link = S_ISLNK(found.st_mode),
             .owner = found.st_uid,
             .mode = found.st_mode & 07777u,
             .bytes = found.st_size};
  return 0;
}
int FileSystem::lock(int file, bool wait) {
  return result(::flock(file, LOCK_EX | (wait ? 0 : LOCK_NB)));
}

std::vector<std::byte> read_file(FileSystem& files, const std::string& path,
                                 std::int64_t most_bytes) {
  const int file = files.open(path, O_RDONLY | O_NONBLOCK, 0);
  if (file < 0) fail(ErrorCode::kFile, "cannot open '{}': {}", path, std::strerror(-file));
  struct Closer {
    FileSystem& files;
    int file;
    ~Closer() { files.close(file); }
  } closer{files, file};
  struct stat found;
  if (fstat(file, &found) != 0 || !S_ISREG(found.st_mode)) {
    fail(ErrorCode::kInvalidFile, "'{}' is not a regular file", path);
  }
  // Grown as it is read: the size a file states may be wrong or change meanwhile.
  std::vector<std::byte> bytes;
  std::size_t used = 0;
  while (true) {
    if (bytes.size() - used < 4096) {
      const std::size_t stated = static_cast<std::size_t>(found.st_size) + 1;
      bytes.resize(std::max({bytes.size() * 2, used + 65536, used == 0 ? stated : 0}));
    }
    const std::int64_t count = files.read(file, bytes.data() + used, bytes.size() - used);
    if (count == -EINTR) continue;
    if (count < 0) {
      fail(ErrorCode::kFile, "cannot read '{}': {}", path, std::strerror(static_cast<int>(-count)));
    }
    if (count == 0) break;
    used += static_cast<std::size_t>(count);
    if (static_cast<std::int64_t>(used) > most_bytes) {
      fail(ErrorCode::kInvalidFile, "'{}' is larger than the {} bytes allowed here", path,
           most_bytes);
    }
  }
  bytes.resize(used);
  return bytes;
}

void write_file_atomically(FileSystem& files, const std::string& path,
                           std::span<const std::byte> bytes, unsigned mode) {
  const std::string temporary = temporary_name(path);
  const int file = files.open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, mode);
  if (file < 0) fail(ErrorCode::kFile, "cannot create '{}': {}", temporary, std::strerror(-file));
  const auto give_up = [&](const char* what, std::int64_t code, bool open) {
    if (open) files.close(file);
    files.unlink(temporary);
    fail(ErrorCode::kFile, "cannot {} '{}': {}", what, temporary,
         std::strerror(static_cast<int>(-code)));
  };
  std::size_t written = 0;
  while (written < bytes.size()) {
    const std::int64_t count =
        files.write(file, bytes.data() + written, bytes.size() - written);
    if (count == -EINTR) continue;
    if (count <= 0) give_up("write", count == 0 ? -ENOSPC : count, true);
    written += static_cast<std::size_t>(count);
  }
  if (const int code = files.sync(file); code < 0) give_up("sync", code, true);
  if (const int code = files.close(file); code < 0) give_up("close", code, false);
  if (const int code = files.rename(temporary, path); code < 0) give_up("rename", code, false);
}

}  // namespace annulus::base
