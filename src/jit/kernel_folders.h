#ifndef ANNULUS_JIT_KERNEL_FOLDERS_H_
#define ANNULUS_JIT_KERNEL_FOLDERS_H_

// Folders of kernels that were compiled ahead and shipped: a search path of folders that are only
// read, never created or written.
//
//   KernelFolders folders({"/opt/engine/kernels"}, log);
//   folders.find(key);          // from the compiler in the key
//   folders.of_others(key, 0);  // from other compilers
//
// No file can make a result wrong or a call fail: a file is used only if its digest and its key
// match. A folder that is missing, not trusted or full of other files only costs time. A folder is
// trusted if it and its files belong to the user or to root, and if no other user may write to
// them. It is opened by its name for each lookup, so a replaced folder is found. All functions may
// be called from any thread.

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/files.h"
#include "base/log.h"
#include "base/private_folder.h"
#include "jit/compiled_kernel.h"

namespace annulus::jit {

// The size limit of a kernel file.
inline constexpr std::int64_t kMaxKernelBytes = 256 << 20;

// A kernel that was read from a file.
struct FoundKernel {
  KernelKey key;
  CompiledKernel kernel;
  std::string path;
};

// An open folder. The creator of this object closes the descriptor.
struct OpenFolder {
  base::FileSystem& files;
  int folder;
  const std::string& path;
  base::FolderUse use;
};

// The kernel in a file of a folder. Returns nothing if the file does not exist; then *why is empty.
// Returns nothing if the file is not used; then *why has the reason.
std::optional<FoundKernel> read_kernel(const OpenFolder& folder, const std::string& name,
                                       const KernelKey& key, std::string* why);

// The names of kernel files in a folder, by the digest of KernelKey::wanted. The folder is listed
// once, and again if it has changed since.
class FolderNames {
 public:
  std::vector<std::string> of(const OpenFolder& folder, const base::Digest& wanted);

 private:
  std::mutex mutex_;
  // listed so long after the last change that a later change has a different time
  bool settled_ = false;
  base::FileSystem::Status listed_;
  std::vector<std::string> names_;  // ascending
};

// The kernels for KernelKey::wanted from other compilers, the newest first. Kernels from a later
// major version than `driver` (in the form of cuDriverGetVersion) are left out; if `driver` is 0,
// none is left out. A file that is not used adds a line to the log.
std::vector<FoundKernel> read_others(const OpenFolder& folder, FolderNames& names,
                                     const KernelKey& key, int driver, const base::Log& log);

// A kernel file with the origin at its beginning, for users.
struct ListedKernel {
  std::string name;
  std::int64_t bytes = 0;
  std::int64_t modified = 0;           // seconds since 1970
  std::optional<KernelOrigin> origin;  // no value: it is not a kernel file of this format version
};
// In the order of their names.
std::vector<ListedKernel> list_kernel_files(const OpenFolder& folder);

// Whether the folder has a kernel with this origin, from any compiler. Reads the beginnings of
// files until one matches.
bool any_of(const OpenFolder& folder, const KernelOrigin& origin);

class KernelFolders {
 public:
  // Accesses no file. If `files` is null, the real file system is used.
  explicit KernelFolders(std::vector<std::string> folders, base::Log log = {},
                         std::shared_ptr<base::FileSystem> files = nullptr);

  const std::vector<std::string>& folders() const { return folders_; }

  // The kernel with this key, including the compiler, from the first folder that has it.
  std::optional<FoundKernel> find(const KernelKey& key);
  // Calls read_others() for all folders in the order of the path.
  std::vector<FoundKernel> of_others(const KernelKey& key, int driver);

  bool any_of(const KernelOrigin& origin);

  // One folder, for users.
  struct Described {
    std::string folder;
    bool there = false;
    std::string problem;  // the reason why it is not used; empty if it is used or does not exist
    std::vector<ListedKernel> kernels;
  };
  std::vector<Described> describe();

 private:
  template <typename Look>
  void each(const Look& look);

  std::vector<std::string> folders_;
  base::Log log_;
  std::shared_ptr<base::FileSystem> files_;
  std::map<std::string, FolderNames> names_;  // one for each folder; the map itself never changes
  std::mutex mutex_;
  std::map<std::string, std::string> problems_;  // the problems that were logged
};

// The search path for a device's kernels: the folders of `path`, which are separated by ':', then
// the existing folders "annulus/kernels" and "lib/annulus/kernels" in each element of `own`
// (abi/own_folders.h).
std::vector<std::string> kernel_path(std::string_view path, const std::vector<std::string>& own);

}  // namespace annulus::jit

#endif  // ANNULUS_JIT_KERNEL_FOLDERS_H_
