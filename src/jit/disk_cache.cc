#include "jit/disk_cache.h"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "base/file_lock.h"
#include "base/private_folder.h"

namespace annulus::jit {
namespace {

// Listing a folder takes longer than storing a file, so old files are removed only after this
// number of stores.
constexpr std::int64_t kStoresPerSweep = 64;

}  // namespace

DiskCache::DiskCache(DiskCacheOptions options, base::Log log,
                     std::shared_ptr<base::FileSystem> files)
    : options_(std::move(options)),
      log_(std::move(log)),
      files_(files ? std::move(files) : std::make_shared<base::FileSystem>()) {
  while (options_.folder.size() > 1 && options_.folder.back() == '/') options_.folder.pop_back();
  if (options_.folder.empty()) {
    problem_ = "no folder is set (ANNULUS_CACHE_DIR, XDG_CACHE_HOME or HOME)";
    return;
  }
  folder_ = base::open_private_folder(
      *files_, options_.folder, base::FolderUse::kOwn,
      "set ANNULUS_CACHE_DIR to a folder of your own, perhaps one below it; "
      "kernels that several users read belong in ANNULUS_KERNELS",
      &problem_);
  if (folder_ < 0) note_once(fmt::format("compiled kernels are not kept on disk: {}", problem_));
}

DiskCache::~DiskCache() {
  if (folder_ >= 0) files_->close(folder_);
}

// Writes a warning only once per cache, because a full disk would otherwise cause one for every
// kernel.
void DiskCache::note_once(const std::string& text) {
  const bool first = !noted_.exchange(true);
  log_.write(first ? base::LogLevel::kWarning : base::LogLevel::kDebug, "{}", text);
}

OpenFolder DiskCache::open_folder() const {
  return {*files_, folder_, options_.folder, base::FolderUse::kOwn};
}

std::optional<CompiledKernel> DiskCache::find(const KernelKey& key, bool quiet) {
  if (!usable() || key.compiler.empty()) return std::nullopt;
  const std::string name = kernel_file_name(key);
  std::vector<std::byte> file;
  const base::FileResult read = base::try_read_private_file(*files_, folder_, base::FolderUse::kOwn,
                                                            name, kMaxKernelBytes, &file);
  if (read.code == -ENOENT) return std::nullopt;
  if (!read.ok()) {
    if (!quiet)
      note_once(fmt::format("cannot {} the compiled kernel '{}/{}': {}; compiling anew", read.step,
                            options_.folder, name, base::describe_private(read)));
    return std::nullopt;
  }
  std::string why;
  std::optional<KernelFile> found = decode_kernel_file(file, key, &why);
  if (found) return std::move(found->kernel);
  if (!quiet) {
    log_.write(base::LogLevel::kWarning,
               "the compiled kernel '{}/{}' is not used: {}; compiling "
               "anew",
               options_.folder, name, why);
  }
  return std::nullopt;
}

std::vector<FoundKernel> DiskCache::of_others(const KernelKey& key, int driver) {
  if (!usable()) return {};
  return read_others(open_folder(), names_, key, driver, log_);
}

bool DiskCache::store(const KernelKey& key, const CompiledKernel& kernel) {
  if (!usable()) return false;
  const std::string name = kernel_file_name(key);
  const base::FileResult written =
      base::try_write_file(*files_, folder_, name, encode_kernel_file(key, kernel), 0600);
  if (!written.ok()) {
    note_once(fmt::format("cannot {} the compiled kernel '{}/{}': {}; it is kept in memory only",
                          written.step, options_.folder, name, base::describe_errno(written.code)));
    return false;
  }
  if (stored_.fetch_add(1) % kStoresPerSweep == 0) sweep(name);
  return true;
}

DiskCache::Lock::~Lock() {
  if (file_ >= 0) base::Opened::close_locked(*files_, file_);
}

DiskCache::Lock DiskCache::lock(const KernelKey& key) {
  if (!usable()) return {nullptr, -1};
  const std::string name = key.digest.hex().substr(0, 2) + ".lock";
  const int file = files_->open(folder_, name, O_RDWR | O_CREAT | O_NOFOLLOW, 0600);
  Lock held(files_.get(), file);
  if (file < 0) return {nullptr, -1};
  const base::LockOutcome outcome = base::wait_for_lock(*files_, file, options_.lock_wait);
  if (outcome == base::LockOutcome::kLocked) return held;
  if (outcome == base::LockOutcome::kBusy) {
    note_once(
        fmt::format("another process or thread has held '{}/{}' for {} ms; compiling it as well",
                    options_.folder, name, options_.lock_wait.count()));
  }
  return {nullptr, -1};
}

std::vector<ListedKernel> DiskCache::list() {
  if (!usable()) return {};
  return list_kernel_files(open_folder());
}

bool DiskCache::any_of(const KernelOrigin& origin) {
  return usable() && jit::any_of(open_folder(), origin);
}

// Removes temporary files that killed writers left. If max_bytes is exceeded, removes the oldest
// kernels, down to three quarters of max_bytes. Another process may do the same at the same time.
// If a file is removed before a reader opens it, the reader has a miss. `newest` is a file that was
// just written.
void DiskCache::sweep(const std::string& newest) {
  struct Entry {
    std::string name;
    std::int64_t bytes;
    std::int64_t modified;
  };
  base::sweep_temporaries(*files_, folder_, newest);
  std::vector<std::string> names;
  if (files_->list(folder_, &names) < 0) return;
  std::vector<Entry> kernels;
  std::int64_t bytes = 0;
  for (const std::string& name : names) {
    if (!name.ends_with(kKernelSuffix)) continue;
    const int file = files_->open(folder_, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0);
    if (file < 0) continue;
    base::FileSystem::Status status;
    const int code = files_->status(file, &status);
    files_->close(file);
    if (code < 0) continue;
    kernels.push_back({name, status.bytes, status.modified});
    bytes += status.bytes;
  }
  if (bytes <= options_.max_bytes) return;
  std::ranges::sort(kernels, {}, &Entry::modified);
  for (const Entry& entry : kernels) {
    if (bytes <= options_.max_bytes / 4 * 3) break;
    if (files_->unlink(folder_, entry.name) == 0) bytes -= entry.bytes;
  }
  log_.write(base::LogLevel::kInfo, "removed the oldest compiled kernels from '{}': {} bytes left",
             options_.folder, bytes);
}

}  // namespace annulus::jit
