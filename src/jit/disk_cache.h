#ifndef ANNULUS_JIT_DISK_CACHE_H_
#define ANNULUS_JIT_DISK_CACHE_H_

// Compiled kernels in a private folder: one immutable file per kernel, named by what it is a kernel
// for and by its compiler (kernel_file_name).
//
// Nothing here can make an answer wrong: a file is used only if its digest and its full key agree;
// otherwise it is a miss, with one line in the log, and is replaced. Nothing here can make a call
// fail: a folder that cannot be read or written only costs time. A kernel file is code, so the
// folder must be as trusted as the program: it is used only if it is the caller's own (owner is the
// effective user, no other may write, no symbolic link), and made with mode 0700.
//
// Files are read(), never mapped: on a network file system a mapped file that is replaced ends the
// process. All functions may be called from any thread and by any number of processes.

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
  std::string folder;                  // empty: nothing is kept on disk
  std::int64_t max_bytes = 1ll << 30;  // above this the oldest kernels are removed
  std::chrono::milliseconds lock_wait{60'000};
};

class DiskCache {
 public:
  // Makes the folder where it is missing. `files` null: the real file system.
  explicit DiskCache(DiskCacheOptions options, base::Log log = {},
                     std::shared_ptr<base::FileSystem> files = nullptr);
  ~DiskCache();
  DiskCache(const DiskCache&) = delete;
  DiskCache& operator=(const DiskCache&) = delete;

  // Whether kernels are looked up on disk, and if not, why.
  bool usable() const { return folder_ >= 0; }
  const std::string& problem() const { return problem_; }
  const DiskCacheOptions& options() const { return options_; }

  // quiet: writes no log line about a file that is not used, for a second look at the same file.
  std::optional<CompiledKernel> find(const KernelKey& key, bool quiet = false);
  // What other compilers have made of what a key wants (read_others). It is looked for only where
  // there is no compiler.
  std::vector<FoundKernel> of_others(const KernelKey& key, int driver);
  // Returns whether the kernel is on disk now.
  bool store(const KernelKey& key, const CompiledKernel& kernel);

  // A lock that keeps other processes from compiling the same key. It only saves work and protects
  // nothing. Taking it waits up to lock_wait while another process holds it; where locks do not
  // work (some network file systems) it returns at once. It is released by the destructor, and by
  // the operating system if the process dies. Lock files are few, shared by keys and never deleted.
  class Lock {
   public:
    Lock(base::FileSystem* files, int file) : files_(files), file_(file) {}
    ~Lock();
    Lock(Lock&& other) noexcept : files_(other.files_), file_(std::exchange(other.file_, -1)) {}
    Lock& operator=(Lock&&) = delete;

   private:
    base::FileSystem* files_;
    int file_;  // negative: not held
  };
  Lock lock(const KernelKey& key);

  // The files of the folder and how each begins, for people. None where it is not usable.
  std::vector<ListedKernel> list();
  // As of KernelFolders.
  bool any_of(const KernelOrigin& origin);

 private:
  OpenFolder open_folder() const;
  void note_once(const std::string& text);
  void sweep(const std::string& newest);

  DiskCacheOptions options_;
  base::Log log_;
  std::shared_ptr<base::FileSystem> files_;
  std::string problem_;
  int folder_ = -1;  // held open, so that no other folder can take its name
  FolderNames names_;
  std::atomic<bool> noted_{false};
  std::atomic<std::int64_t> stored_{0};
};

}  // namespace annulus::jit

#endif  // ANNULUS_JIT_DISK_CACHE_H_
