#ifndef ANNULUS_TESTS_SUPPORT_FAULTY_FILES_H_
#define ANNULUS_TESTS_SUPPORT_FAULTY_FILES_H_

// The real file system with faults. The n-th call fails with a chosen errno, either once or
// together with all later calls. Reads and writes may be cut short. It counts calls and open
// descriptors. So a test can make every call of an operation fail in turn, and check that no
// descriptor stays open.

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "base/files.h"

namespace annulus::test {

class FaultyFiles : public base::FileSystem {
 public:
  int fail_at = -1;            // index of the call that fails, counted from 0; -1: no call fails
  int code = EIO;              // the errno with which it fails
  bool persistent = false;     // later calls fail too
  bool cut_short = false;      // reads and writes transfer at most 7 bytes
  bool refuse_writes = false;  // every call that changes a file fails with `code`

  int calls() const { return calls_; }
  int opened() const { return opened_; }
  int mapped() const { return mapped_; }
  std::int64_t bytes_read() const { return bytes_read_; }

  int open(int folder, const std::string& path, int flags, unsigned mode) override {
    const bool changes = (flags & 0100) != 0;  // O_CREAT
    if (fault(changes)) return -code;
    const int file = FileSystem::open(folder, path, flags, mode);
    if (file >= 0) ++opened_;
    return file;
  }
  std::int64_t read(int file, void* data, std::size_t bytes) override {
    if (fault(false)) return -code;
    const std::int64_t count =
        FileSystem::read(file, data, cut_short ? std::min<std::size_t>(bytes, 7) : bytes);
    bytes_read_ += std::max<std::int64_t>(count, 0);
    return count;
  }
  std::int64_t write(int file, const void* data, std::size_t bytes) override {
    if (fault(true)) return -code;
    return FileSystem::write(file, data, cut_short ? std::min<std::size_t>(bytes, 7) : bytes);
  }
  int truncate(int file, std::int64_t bytes) override {
    return fault(true) ? -code : FileSystem::truncate(file, bytes);
  }
  // It does not sync the disk, because no test could notice that.
  int sync(int) override { return fault(true) ? -code : 0; }
  int close(int file) override {
    // As on Linux, the descriptor is closed even if close reports an error.
    const bool failed = fault(false);
    --opened_;
    const int real = FileSystem::close(file);
    return failed ? -code : real;
  }
  int rename(int folder, const std::string& from, const std::string& to) override {
    return fault(true) ? -code : FileSystem::rename(folder, from, to);
  }
  int unlink(int folder, const std::string& path) override {
    return fault(true) ? -code : FileSystem::unlink(folder, path);
  }
  int make_folder(const std::string& path, unsigned mode) override {
    return fault(true) ? -code : FileSystem::make_folder(path, mode);
  }
  int status(int file, Status* status) override {
    return fault(false) ? -code : FileSystem::status(file, status);
  }
  int list(int folder, std::vector<std::string>* names) override {
    return fault(false) ? -code : FileSystem::list(folder, names);
  }
  int map(int file, std::size_t bytes, const void** data) override {
    if (fault(false)) return -code;
    const int result = FileSystem::map(file, bytes, data);
    if (result == 0) ++mapped_;
    return result;
  }
  void unmap(const void* data, std::size_t bytes) override {
    --mapped_;
    FileSystem::unmap(data, bytes);
  }
  int lock(int file) override { return fault(true) ? -code : FileSystem::lock(file); }

 private:
  bool fault(bool changes) {
    const int index = calls_++;
    if (refuse_writes && changes) return true;
    return fail_at >= 0 && (persistent ? index >= fail_at : index == fail_at);
  }

  std::atomic<int> calls_{0};
  std::atomic<int> opened_{0};
  std::atomic<int> mapped_{0};
  std::atomic<std::int64_t> bytes_read_{0};
};

// The real file system, but every file appears to belong to one other user.
class OthersFiles : public base::FileSystem {
 public:
  explicit OthersFiles(unsigned owner) : owner_(owner) {}
  int status(int file, Status* status) override {
    const int code = FileSystem::status(file, status);
    status->owner = owner_;
    return code;
  }

 private:
  unsigned owner_;
};

// The real file system, but every file that is not a folder appears to belong to one other user, or
// to have another mode.
class OthersRegularFiles : public base::FileSystem {
 public:
  OthersRegularFiles(unsigned owner, unsigned mode) : owner_(owner), mode_(mode) {}
  int status(int file, Status* status) override {
    const int code = FileSystem::status(file, status);
    if (!status->folder) {
      status->owner = owner_;
      status->mode = mode_;
    }
    return code;
  }

 private:
  unsigned owner_;
  unsigned mode_;
};

// A temporary folder that the destructor removes.
class ScratchFolder {
 public:
  ScratchFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "annulus-test-XXXXXX").string();
    if (!mkdtemp(name.data())) throw std::runtime_error("no scratch folder");
    path_ = name;
  }
  ~ScratchFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;

  const std::string& path() const { return path_; }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }
  std::size_t entries() const {
    std::size_t count = 0;
    for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(path_)) ++count;
    return count;
  }

 private:
  std::string path_;
};

}  // namespace annulus::test

#endif  // ANNULUS_TESTS_SUPPORT_FAULTY_FILES_H_
