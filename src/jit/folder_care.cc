#include "jit/folder_care.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

namespace annulus::jit {

Pruned prune(const OpenFolder& folder, const PruneRules& rules, std::int64_t now) {
  std::vector<ListedKernel> kernels = list_kernel_files(folder);
  std::ranges::stable_sort(kernels, {}, &ListedKernel::modified);
  // The clock of the file server may be ahead of this machine's clock.
  if (!kernels.empty()) now = std::max(now, kernels.back().modified);
  Pruned pruned;
  const auto remove = [&](const ListedKernel& kernel) {
    const int code = rules.dry_run ? 0 : folder.files.unlink(folder.folder, kernel.name);
    if (code < 0) {
      pruned.problems.push_back(fmt::format("cannot remove '{}/{}': {}", folder.path, kernel.name,
                                            base::describe_errno(code)));
      return false;
    }
    ++pruned.removed;
    pruned.removed_bytes += kernel.bytes;
    return true;
  };
  std::erase_if(kernels, [&](const ListedKernel& kernel) {
    const bool old = rules.older_than_seconds >= 0 &&
                     static_cast<double>(now - kernel.modified) > rules.older_than_seconds;
    const bool useless = rules.keeps && !(kernel.origin && rules.keeps(*kernel.origin));
    return (old || useless) && remove(kernel);
  });
  std::int64_t bytes = 0;
  for (const ListedKernel& kernel : kernels) bytes += kernel.bytes;
  std::erase_if(kernels, [&](const ListedKernel& kernel) {
    if (rules.max_bytes < 0 || bytes <= rules.max_bytes || !remove(kernel)) return false;
    bytes -= kernel.bytes;
    return true;
  });
  pruned.left = std::ssize(kernels);
  pruned.left_bytes = bytes;
  return pruned;
}

namespace {

// Reads one kernel file. Returns nothing if it is damaged; then *why has the reason.
std::optional<KernelFile> read_whole(const OpenFolder& folder, const std::string& name,
                                     std::string* why) {
  std::vector<std::byte> bytes;
  const base::FileResult read = base::try_read_private_file(folder.files, folder.folder, folder.use,
                                                            name, kMaxKernelBytes, &bytes);
  if (!read.ok()) {
    *why = fmt::format("cannot {} it: {}", read.step, base::describe_private(read));
    return std::nullopt;
  }
  std::optional<KernelFile> file = decode_kernel_file(bytes, why);
  if (!file || kernel_file_name(file->key) == name) return file;
  *why = "its name does not match its key";
  return std::nullopt;
}

}  // namespace

std::vector<std::string> wanted_in(const OpenFolder& folder) {
  std::vector<std::string> wanted;
  std::string why;
  for (const ListedKernel& kernel : list_kernel_files(folder)) {
    if (auto file = read_whole(folder, kernel.name, &why)) {
      wanted.push_back(std::move(file->key.wanted));
    }
  }
  return wanted;
}

Verified verify(const OpenFolder& folder, bool remove) {
  Verified verified;
  for (const ListedKernel& kernel : list_kernel_files(folder)) {
    std::string why;
    if (read_whole(folder, kernel.name, &why)) {
      ++verified.kernels;
      verified.bytes += kernel.bytes;
      continue;
    }
    const int code = remove ? folder.files.unlink(folder.folder, kernel.name) : 0;
    if (code < 0) why += fmt::format("; it cannot be removed: {}", base::describe_errno(code));
    verified.damaged.push_back({kernel.name, std::move(why), remove && code == 0});
  }
  return verified;
}

}  // namespace annulus::jit
