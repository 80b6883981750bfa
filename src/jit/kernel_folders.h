#ifndef ANNULUS_JIT_KERNEL_FOLDERS_H_
#define ANNULUS_JIT_KERNEL_FOLDERS_H_

// Folders of kernels that were compiled ahead and shipped: a search path of folders that are read
// and never made or written.
//
//   KernelFolders folders({"/opt/engine/kernels"}, log);
//   folders.find(key);          // of this very compiler
//   folders.of_others(key, 0);  // of any other
//
// Nothing here can make an answer wrong or a call fail: a file is used only if its digest and its
// key agree, and a folder that is missing, not to be trusted or full of other things only costs
// time. A folder is trusted if it and its files belong to the user or to root, and no other may
// write to them. It is opened by its name for each look-up, so one that was replaced is found. All
// functions may be called from any thread.

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

// No kernel is larger.
inline constexpr std::int64_t kMaxKernelBytes = 256 << 20;

// A kernel that was read from a file.
struct FoundKernel {
  KernelKey key;
  CompiledKernel kernel;
  std::string path;
};

// A folder that is open: a descriptor that somebody else closes.
struct OpenFolder {
  base::FileSystem& files;
  int folder;
  const std::string& path;
  base::FolderUse use;
};

// The kernel of a file in a folder. Empty where there is no such file, then *why is empty, and
// where the file is not used, for the reason in *why.
std::optional<FoundKernel> read_kernel(const OpenFolder& folder, const std::string& name,
                                       const KernelKey& key, std::string* why);

// The names of kernel files in a folder, by what they are kernels for. The folder is listed once,
// and again where it has changed since.
class FolderNames {
 public:
  std::vector<std::string> of(const OpenFolder& folder, const base::Digest& wanted);

 private:
  std::mutex mutex_;
  bool settled_ = false;  // listed so long after the last change that no later one has its time
  base::FileSystem::Status listed_;
  std::vector<std::string> names_;  // ascending
};

// Kernels of what a key wants that another compiler has made, the newest first. Those of a later
// major version than `driver`, as cuDriverGetVersion numbers it, are left out; 0: none is. What is
// not used is a line in the log.
std::vector<FoundKernel> read_others(const OpenFolder& folder, FolderNames& names,
                                     const KernelKey& key, int driver, const base::Log& log);

// A kernel file by how it begins, for people.
struct ListedKernel {
  std::string name;
  std::int64_t bytes = 0;
  std::int64_t modified = 0;           // seconds since 1970
  std::optional<KernelOrigin> origin;  // empty: no kernel of this version of the format
};
// In the order of names.
std::vector<ListedKernel> list_kernel_files(const OpenFolder& folder);

// Whether the folder has a kernel of an origin; one of any compiler does. Reads the beginnings of
// files until there is one.
bool any_of(const OpenFolder& folder, const KernelOrigin& origin);

class KernelFolders {
 public:
  // Touches no file. `files` null: the real file system.
  explicit KernelFolders(std::vector<std::string> folders, base::Log log = {},
                         std::shared_ptr<base::FileSystem> files = nullptr);

  const std::vector<std::string>& folders() const { return folders_; }

  // The kernel of this very key in the first folder that has it.
  std::optional<FoundKernel> find(const KernelKey& key);
  // As read_others(), of all folders in the order of the path.
  std::vector<FoundKernel> of_others(const KernelKey& key, int driver);

  bool any_of(const KernelOrigin& origin);

  // One folder, for people.
  struct Described {
    std::string folder;
    bool there = false;
    std::string problem;  // why it is not used; empty where it is, or is not there
    std::vector<ListedKernel> kernels;
  };
  std::vector<Described> describe();

 private:
  template <typename Look>
  void each(const Look& look);

  std::vector<std::string> folders_;
  base::Log log_;
  std::shared_ptr<base::FileSystem> files_;
  std::map<std::string, FolderNames> names_;  // of each folder; never changed
  std::mutex mutex_;
  std::map<std::string, std::string> problems_;  // that the log has
};

// The search path of a device's kernels: the folders of `path`, ':' between them, then those that
// exist of "annulus/kernels" and "lib/annulus/kernels" in each of `own` (abi/own_folders.h).
std::vector<std::string> kernel_path(std::string_view path, const std::vector<std::string>& own);

}  // namespace annulus::jit

#endif  // ANNULUS_JIT_KERNEL_FOLDERS_H_
