#include "base/files.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <functional>

#include "annulus/types.h"
#include "base/file_lock.h"
#include "support/faulty_files.h"

namespace annulus::base {
namespace {

using test::FaultyFiles;
using test::ScratchFolder;

constexpr std::int64_t kMax = 1 << 20;

std::vector<std::byte> bytes_of(const std::string& text) {
  const auto* data = reinterpret_cast<const std::byte*>(text.data());
  return {data, data + text.size()};
}

ErrorCode code_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    return error.code();
  }
  return ErrorCode{0};
}

TEST_CASE("what is written is read, of any size and over an older file") {
  ScratchFolder folder;
  FileSystem files;
  for (std::size_t size : {0u, 1u, 6u, 7u, 4096u, 70000u}) {
    const auto bytes = bytes_of(std::string(size, static_cast<char>('a' + size % 26)));
    write_file_atomically(files, folder / "file", bytes);
    CHECK(read_file(files, folder / "file", kMax) == bytes);
    CHECK(read_file(files, folder / "file", static_cast<std::int64_t>(size)) == bytes);
  }
  CHECK(folder.entries() == 1);
}

TEST_CASE("reads and writes that are cut short or interrupted give the whole file") {
  ScratchFolder folder;
  const auto bytes = bytes_of(std::string(1000, 'x'));
  FaultyFiles files;
  files.cut_short = true;
  write_file_atomically(files, folder / "file", bytes);
  CHECK(read_file(files, folder / "file", kMax) == bytes);
  const int calls = files.calls();
  for (int n = 0; n < calls; ++n) {
    FaultyFiles interrupted;
    interrupted.cut_short = true;
    interrupted.fail_at = n;
    interrupted.code = EINTR;
    write_file_atomically(interrupted, folder / "file", bytes);
    CHECK(read_file(interrupted, folder / "file", kMax) == bytes);
    CHECK(interrupted.opened() == 0);
  }
}

TEST_CASE("a fault at any call leaves the old file or the new one and nothing else") {
  const auto before = bytes_of("before");
  const auto after = bytes_of("afterwards");
  for (int code : {EIO, ENOSPC, EROFS, EACCES, EDQUOT, ESTALE}) {
    for (bool persistent : {false, true}) {
      for (int n = 0; n < 8; ++n) {
        ScratchFolder folder;
        FileSystem real;
        write_file_atomically(real, folder / "file", before);
        FaultyFiles files;
        files.fail_at = n;
        files.code = code;
        files.persistent = persistent;
        bool failed = false;
        try {
          write_file_atomically(files, folder / "file", after);
        } catch (const Error& error) {
          CHECK(error.code() == ErrorCode::kFile);
          failed = true;
        }
        CHECK(read_file(real, folder / "file", kMax) == (failed ? before : after));
        // If every call fails, removing the temporary file fails too.
        if (!persistent) CHECK(folder.entries() == 1);
        CHECK(files.opened() == 0);
      }
    }
  }
}

TEST_CASE("what is no file of the allowed size is refused with its reason") {
  ScratchFolder folder;
  FileSystem files;
  write_file_atomically(files, folder / "file", bytes_of("1234"));
  const auto code_for = [&](const std::string& path, std::int64_t most) {
    return code_of([&] { read_file(files, path, most); });
  };
  CHECK(code_for(folder / "file", 4) == ErrorCode{0});
  CHECK(code_for(folder / "file", 3) == ErrorCode::kInvalidFile);
  CHECK(code_for(folder / "missing", kMax) == ErrorCode::kFile);
  CHECK(code_for(folder.path(), kMax) == ErrorCode::kInvalidFile);
  CHECK(code_for("/dev/zero", kMax) == ErrorCode::kInvalidFile);
  REQUIRE(mkfifo((folder / "pipe").c_str(), 0600) == 0);
  CHECK(code_for(folder / "pipe", kMax) == ErrorCode::kInvalidFile);
  // A sparse file of a terabyte is rejected by its size, without reading it.
  const int sparse = ::open((folder / "sparse").c_str(), O_WRONLY | O_CREAT, 0600);
  REQUIRE(ftruncate(sparse, std::int64_t{1} << 40) == 0);
  ::close(sparse);
  CHECK(code_for(folder / "sparse", kMax) == ErrorCode::kInvalidFile);
  CHECK(code_of([&] { write_file_atomically(files, folder / "no/such/file", {}); }) ==
        ErrorCode::kFile);
  CHECK(code_of([&] { write_file_atomically(files, folder.path(), {}); }) ==
        ErrorCode::kInvalidFile);
}

TEST_CASE("writing follows a link and never puts a file in the place of a device or pipe") {
  ScratchFolder folder;
  FileSystem files;
  write_file_atomically(files, folder / "file", bytes_of("old"));
  REQUIRE(symlink("file", (folder / "link").c_str()) == 0);
  write_file_atomically(files, folder / "link", bytes_of("new"));
  CHECK(read_file(files, folder / "file", kMax) == bytes_of("new"));
  std::vector<std::byte> bytes;
  const int held = files.open(kHere, folder.path(), O_RDONLY | O_DIRECTORY, 0);
  CHECK(try_read_file(files, held, "link", kMax, &bytes).code == -ELOOP);
  files.close(held);
  REQUIRE(mkfifo((folder / "pipe").c_str(), 0600) == 0);
  REQUIRE(symlink("pipe", (folder / "to_pipe").c_str()) == 0);
  for (const char* name : {"pipe", "to_pipe"}) {
    CHECK(code_of([&] { write_file_atomically(files, folder / name, bytes_of("x")); }) ==
          ErrorCode::kInvalidFile);
  }
  CHECK(code_of([&] { read_file(files, folder / "pipe", kMax); }) == ErrorCode::kInvalidFile);
  CHECK(folder.entries() == 4);
}

TEST_CASE("whether a file could be written is known before it is, and nothing is changed") {
  const ScratchFolder folder;
  FileSystem files;
  check_can_write(files, folder / "file");
  CHECK(folder.entries() == 0);
  const auto bytes = bytes_of("as it was");
  write_file_atomically(files, folder / "file", bytes);
  check_can_write(files, folder / "file");
  CHECK(read_file(files, folder / "file", kMax) == bytes);
  CHECK(folder.entries() == 1);
  const auto code = [&](const std::string& path) {
    return code_of([&] { check_can_write(files, path); });
  };
  CHECK(code(folder / "none/file") == ErrorCode::kFile);
  CHECK(code(folder / "file/below") == ErrorCode::kFile);
  CHECK(code(folder / "") == ErrorCode::kInvalidFile);
  CHECK(code("/dev/null") == ErrorCode::kInvalidFile);
  CHECK(code("") == ErrorCode::kInvalidFile);
  CHECK(code(folder / "new/") == ErrorCode::kInvalidFile);
  FaultyFiles full;
  full.fail_at = 1;  // call 0 examines the existing file
  full.code = EROFS;
  CHECK(code_of([&] { check_can_write(full, folder / "new"); }) == ErrorCode::kFile);
  CHECK(folder.entries() == 1);
}

TEST_CASE("a file system that lies about sizes cannot make the reader go past its limit") {
  class Endless : public FileSystem {
    int status(int file, Status* status) override {
      const int code = FileSystem::status(file, status);
      *status = {.regular = true, .bytes = 0};
      return code;
    }
  } files;
  CHECK(code_of([&] { read_file(files, "/dev/zero", kMax); }) == ErrorCode::kInvalidFile);
}

TEST_CASE("a link in a held folder is not followed, and replaced rather than written through") {
  ScratchFolder folder;
  FileSystem files;
  write_file_atomically(files, folder / "target", bytes_of("target"));
  REQUIRE(symlink("target", (folder / "link").c_str()) == 0);
  const int held = files.open(kHere, folder.path(), O_RDONLY | O_DIRECTORY, 0);
  REQUIRE(held >= 0);
  std::vector<std::byte> bytes;
  CHECK(try_read_file(files, held, "link", kMax, &bytes).code == -ELOOP);
  CHECK(try_read_file(files, held, "target", kMax, &bytes).ok());
  CHECK(try_write_file(files, held, "link", bytes_of("new"), 0600).ok());
  CHECK(read_file(files, folder / "target", kMax) == bytes_of("target"));
  CHECK(read_file(files, folder / "link", kMax) == bytes_of("new"));
  std::vector<std::string> names;
  CHECK(files.list(held, &names) == 0);
  CHECK(names.size() == 2);
  files.close(held);
}

TEST_CASE("a lock excludes another descriptor and goes with its file") {
  ScratchFolder folder;
  FileSystem files;
  const int first = files.open(kHere, folder / "lock", O_RDWR | O_CREAT, 0600);
  const int second = files.open(kHere, folder / "lock", O_RDWR | O_CREAT, 0600);
  CHECK(files.lock(first) == 0);
  CHECK(files.lock(second) == -EWOULDBLOCK);
  files.close(first);
  CHECK(files.lock(second) == 0);
  files.close(second);
}

// A child has the same open file. If only this process closes it, the child keeps the lock.
TEST_CASE("a lock ends with its scope although a child of fork has the file open") {
  const ScratchFolder folder;
  FileSystem files;
  const auto open = [&] {
    const int file = files.open(kHere, folder / "lock", O_RDWR | O_CREAT, 0600);
    REQUIRE(file >= 0);
    return file;
  };
  using std::chrono::milliseconds;
  pid_t child = -1;
  {
    const Opened held(files, open());
    REQUIRE(wait_for_lock(files, held.file, milliseconds(0)) == LockOutcome::kLocked);
    const Opened other(files, open());
    CHECK(wait_for_lock(files, other.file, milliseconds(20)) == LockOutcome::kBusy);
    child = fork();
    if (child == 0) {
      pause();  // waits until it is killed
      _exit(0);
    }
    REQUIRE(child > 0);
  }
  const Opened again(files, open());
  CHECK(wait_for_lock(files, again.file, milliseconds(0)) == LockOutcome::kLocked);
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  FaultyFiles faulty;
  CHECK(wait_for_lock(faulty, -1, milliseconds(50)) == LockOutcome::kNone);
}

}  // namespace
}  // namespace annulus::base
