#include "jit/kernel_folders.h"

#include <fcntl.h>
#include <fmt/core.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <system_error>
#include <utility>

namespace annulus::jit {
namespace {

// If a kernel has files from more compilers than this, the folder was probably filled by an
// attacker.
constexpr std::size_t kMaxCompilers = 16;
constexpr char kRemedy[] = "name a folder in ANNULUS_KERNELS that is root's or your own";

// A file system may store times in whole seconds. So if a folder changed less than this time before
// it was listed, it may have changed again later with the same time.
constexpr std::int64_t kSettleSeconds = 2;

std::int64_t seconds_now() {
  return std::chrono::duration_cast<std::chrono::seconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

bool same_state(const base::FileSystem::Status& a, const base::FileSystem::Status& b) {
  return a.identity == b.identity && a.modified == b.modified &&
         a.modified_nanos == b.modified_nanos;
}

struct FileCloser {
  base::FileSystem& files;
  int file;
  ~FileCloser() {
    if (file >= 0) files.close(file);
  }
};

std::optional<KernelOrigin> read_origin(base::FileSystem& files, int file) {
  std::vector<std::byte> beginning(kOriginBytes);
  std::size_t count = 0;
  while (count < beginning.size()) {
    const std::int64_t read = files.read(file, beginning.data() + count, beginning.size() - count);
    if (read <= 0) break;
    count += static_cast<std::size_t>(read);
  }
  return origin_of_file(std::span(beginning).first(count));
}

}  // namespace

std::optional<FoundKernel> read_kernel(const OpenFolder& folder, const std::string& name,
                                       const KernelKey& key, std::string* why) {
  why->clear();
  std::vector<std::byte> bytes;
  const base::FileResult read = base::try_read_private_file(folder.files, folder.folder, folder.use,
                                                            name, kMaxKernelBytes, &bytes);
  if (read.code == -ENOENT) return std::nullopt;
  if (!read.ok()) {
    *why = fmt::format("cannot {} it: {}", read.step, base::describe_private(read));
    return std::nullopt;
  }
  std::optional<KernelFile> file = decode_kernel_file(bytes, key, why);
  if (!file) return std::nullopt;
  return FoundKernel{std::move(file->key), std::move(file->kernel), folder.path + "/" + name};
}

std::vector<std::string> FolderNames::of(const OpenFolder& folder, const base::Digest& wanted) {
  base::FileSystem::Status now;
  if (folder.files.status(folder.folder, &now) < 0) return {};
  const std::lock_guard guard(mutex_);
  if (!settled_ || !same_state(listed_, now)) {
    const std::int64_t listed_at = seconds_now();
    names_.clear();
    settled_ = false;
    if (folder.files.list(folder.folder, &names_) < 0) return {};
    std::erase_if(names_, [](const std::string& name) { return !name.ends_with(kKernelSuffix); });
    std::ranges::sort(names_);
    listed_ = now;
    settled_ = listed_at - now.modified > kSettleSeconds;
  }
  const std::string prefix = wanted.hex() + "-";
  std::vector<std::string> found;
  for (auto at = std::ranges::lower_bound(names_, prefix);
       at != names_.end() && at->starts_with(prefix) && found.size() < kMaxCompilers; ++at) {
    found.push_back(*at);
  }
  return found;
}

std::vector<FoundKernel> read_others(const OpenFolder& folder, FolderNames& names,
                                     const KernelKey& key, int driver, const base::Log& log) {
  const KernelKey of_any(key.wanted, "");
  const std::string own = kernel_file_name(key);
  std::vector<FoundKernel> others;
  for (const std::string& name : names.of(folder, key.digest)) {
    if (name == own) continue;
    std::string why;
    std::optional<FoundKernel> found = read_kernel(folder, name, of_any, &why);
    if (found && kernel_file_name(found->key) != name) {
      why = "its name does not match its compiler";
      found.reset();
    }
    if (!why.empty()) {
      log.write(base::LogLevel::kWarning, "the compiled kernel '{}/{}' is not used: {}",
                folder.path, name, why);
    }
    if (!found) continue;
    const int version = compiler_version(found->key.compiler);
    if (driver != 0 && version / 1000 > driver / 1000) continue;
    others.push_back(std::move(*found));
  }
  std::ranges::stable_sort(others, std::ranges::greater{}, [](const FoundKernel& found) {
    return compiler_version(found.key.compiler);
  });
  return others;
}

namespace {

// Calls visit() with the beginning of each kernel file of a folder, in the order of the names,
// until it returns true.
template <typename Visit>
void visit_kernels(const OpenFolder& folder, const Visit& visit) {
  std::vector<std::string> names;
  if (folder.files.list(folder.folder, &names) < 0) return;
  std::ranges::sort(names);
  for (const std::string& name : names) {
    if (!name.ends_with(kKernelSuffix)) continue;
    const FileCloser file{folder.files, folder.files.open(folder.folder, name,
                                                          O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0)};
    base::FileSystem::Status status;
    if (file.file < 0 || folder.files.status(file.file, &status) < 0) continue;
    if (visit(ListedKernel{name, status.bytes, status.modified,
                           status.regular ? read_origin(folder.files, file.file) : std::nullopt})) {
      return;
    }
  }
}

}  // namespace

std::vector<ListedKernel> list_kernel_files(const OpenFolder& folder) {
  std::vector<ListedKernel> kernels;
  visit_kernels(folder, [&](ListedKernel kernel) {
    kernels.push_back(std::move(kernel));
    return false;
  });
  return kernels;
}

bool any_of(const OpenFolder& folder, const KernelOrigin& origin) {
  bool any = false;
  visit_kernels(folder, [&](const ListedKernel& kernel) {
    return any = kernel.origin && serves(*kernel.origin, origin);
  });
  return any;
}

KernelFolders::KernelFolders(std::vector<std::string> folders, base::Log log,
                             std::shared_ptr<base::FileSystem> files)
    : folders_(std::move(folders)),
      log_(std::move(log)),
      files_(files ? std::move(files) : std::make_shared<base::FileSystem>()) {
  for (const std::string& folder : folders_) names_.try_emplace(folder);
}

// Calls look(folder, names) for each usable folder until it returns true. A problem with a folder
// is logged once.
template <typename Look>
void KernelFolders::each(const Look& look) {
  for (const std::string& path : folders_) {
    std::string problem;
    const FileCloser folder{
        *files_,
        base::open_private_folder(*files_, path, base::FolderUse::kOwnOrRoots, kRemedy, &problem)};
    if (!problem.empty()) {
      const std::lock_guard guard(mutex_);
      std::string& told = problems_[path];
      if (std::exchange(told, problem) == problem) continue;
      log_.write(base::LogLevel::kWarning, "compiled kernels are not read from there: {}", problem);
    }
    if (folder.file < 0) continue;
    if (look(OpenFolder{*files_, folder.file, path, base::FolderUse::kOwnOrRoots},
             names_.at(path))) {
      return;
    }
  }
}

std::optional<FoundKernel> KernelFolders::find(const KernelKey& key) {
  std::optional<FoundKernel> found;
  if (key.compiler.empty()) return found;
  const std::string name = kernel_file_name(key);
  each([&](const OpenFolder& folder, FolderNames&) {
    std::string why;
    found = read_kernel(folder, name, key, &why);
    if (!why.empty()) {
      log_.write(base::LogLevel::kWarning, "the compiled kernel '{}/{}' is not used: {}",
                 folder.path, name, why);
    }
    return found.has_value();
  });
  return found;
}

std::vector<FoundKernel> KernelFolders::of_others(const KernelKey& key, int driver) {
  std::vector<FoundKernel> all;
  each([&](const OpenFolder& folder, FolderNames& names) {
    for (FoundKernel& found : read_others(folder, names, key, driver, log_)) {
      all.push_back(std::move(found));
    }
    return false;
  });
  return all;
}

bool KernelFolders::any_of(const KernelOrigin& origin) {
  bool any = false;
  each([&](const OpenFolder& folder, FolderNames&) { return any = jit::any_of(folder, origin); });
  return any;
}

std::vector<KernelFolders::Described> KernelFolders::describe() {
  std::vector<Described> described;
  for (const std::string& path : folders_) {
    Described each;
    each.folder = path;
    const FileCloser folder{
        *files_, base::open_private_folder(*files_, path, base::FolderUse::kOwnOrRoots, kRemedy,
                                           &each.problem)};
    each.there = folder.file >= 0 || !each.problem.empty();
    if (folder.file >= 0) {
      each.kernels = list_kernel_files({*files_, folder.file, path, base::FolderUse::kOwnOrRoots});
    }
    described.push_back(std::move(each));
  }
  return described;
}

std::vector<std::string> kernel_path(std::string_view path, const std::vector<std::string>& own) {
  std::vector<std::string> folders;
  const auto add = [&](std::string folder) {
    while (folder.size() > 1 && folder.back() == '/') folder.pop_back();
    if (folder.empty() || std::ranges::find(folders, folder) != folders.end()) return;
    folders.push_back(std::move(folder));
  };
  for (std::size_t begin = 0; begin <= path.size();) {
    const std::size_t end = std::min(path.find(':', begin), path.size());
    add(std::string(path.substr(begin, end - begin)));
    begin = end + 1;
  }
  for (const std::string& folder : own) {
    for (const char* below : {"/annulus/kernels", "/lib/annulus/kernels"}) {
      std::error_code error;
      if (std::filesystem::is_directory(folder + below, error)) add(folder + below);
    }
  }
  return folders;
}

}  // namespace annulus::jit
