#ifndef ANNULUS_JIT_DISK_CACHE_H_
#define ANNULUS_JIT_DISK_CACHE_H_

// Compiled kernels in a private folder. Each kernel is one immutable file, whose name contains the
// digest of KernelKey::wanted and of the compiler (kernel_file_name).
//
// No file can make a result wrong: a file is used only if its digest and its full key match.
// Otherwise it counts as a miss, with one line in the log, and is replaced. No file can make a call
// fail: if the folder cannot be read or written, calls only take longer. A kernel file is code, so
// the folder must be as trusted as the program. It is used only if the caller owns it (its owner is
// the effective user, no other user may write to it, and it is not a symbolic link). It is created
// with mode 0700.
//
// Files are read with read() and never mapped: on a network file system, replacing a mapped file
// would end the process. All functions may be called from any thread and by any number of
// processes.

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/files.h"
#include "base/log.h"
#include "jit/compiled_kernel.h"
#include "jit/kernel_folders.h"

namespace annulus::jit {

struct DiskCacheOptions {
  std::string folder;                  // empty: nothing is stored on disk
  std::int64_t max_bytes = 1ll << 30;  // if it is exceeded, the oldest kernels are removed
  std::chrono::milliseconds lock_wait{60'000};
};

class DiskCache {
 public:
  // Creates the folder if it does not exist. If `files` is null, the real file system is used.
  explicit DiskCache(DiskCacheOptions options, base::Log log = {},
                     std::shared_ptr<base::FileSystem> files = nullptr);
  ~DiskCache();
  DiskCache(const DiskCache&) = delete;
  DiskCache& operator=(const DiskCache&) = delete;

  // Whether kernels are looked up on disk; if they are not, problem() has the reason.
  bool usable() const { return folder_ >= 0; }
  const std::string& problem() const { return problem_; }
  const DiskCacheOptions& options() const { return options_; }

  // With `quiet`, no log line is written about a file that is not used. It is for a second lookup
  // of the same file.
  std::optional<CompiledKernel> find(const KernelKey& key, bool quiet = false);
  // The kernels for KernelKey::wanted from other compilers (read_others). They are used only if
  // there is no compiler.
  std::vector<FoundKernel> of_others(const KernelKey& key, int driver);
  // Returns whether the kernel is now on disk.
  bool store(const KernelKey& key, const CompiledKernel& kernel);

  // A lock that keeps other processes from compiling the same key. It only saves work and protects
  // no data. lock() waits up to lock_wait if another process holds the lock. If locks do not work,
  // as on some network file systems, it returns at once. The destructor releases the lock, and so
  // does the operating system if the process dies. There are few lock files; they are shared by
  // keys and never deleted.
  class Lock {
   public:
    Lock(base::FileSystem* files, int file) : files_(files), file_(file) {}
    ~Lock();
    Lock(Lock&& other) noexcept : files_(other.files_), file_(std::exchange(other.file_, -1)) {}
    Lock& operator=(Lock&&) = delete;

   private:
    base::FileSystem* files_;
    int file_;  // negative if the lock is not held
  };
  Lock lock(const KernelKey& key);

  // The files of the folder with their origins, for users. Empty if the folder is not usable.
  std::vector<ListedKernel> list();
  // Whether the folder has a kernel with this origin, from any compiler.
  bool any_of(const KernelOrigin& origin);

 private:
  OpenFolder open_folder() const;
  void note_once(const std::string& text);
  void sweep(const std::string& newest);

  DiskCacheOptions options_;
  base::Log log_;
  std::shared_ptr<base::FileSystem> files_;
  std::string problem_;
  // kept open, so that it stays the same folder even if another one takes its name
  int folder_ = -1;
  FolderNames names_;
  std::atomic<bool> noted_{false};
  std::atomic<std::int64_t> stored_{0};
};

}  // namespace annulus::jit

#endif  // ANNULUS_JIT_DISK_CACHE_H_
