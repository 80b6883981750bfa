#include "jit/compile_ahead.h"

#include <algorithm>
#include <mutex>

#include "base/fail.h"
#include "base/private_folder.h"
#include "base/span.h"
#include "base/thread_pool.h"
#include "jit/disk_cache.h"

namespace annulus::jit {
namespace {

constexpr unsigned kFolderMode = 0755;
constexpr unsigned kFileMode = 0644;

// Keeps the folder open.
class Target {
 public:
  explicit Target(std::string path) : path_(std::move(path)) {
    while (path_.size() > 1 && path_.back() == '/') path_.pop_back();
    if (!path_.starts_with('/')) {
      base::fail(ErrorCode::kInvalidArgument,
                 "'{}' is not an absolute path, which a folder of "
                 "kernels is named by",
                 path_);
    }
    if (const int code = base::make_folders(files_, path_, kFolderMode); code < 0) {
      base::fail(ErrorCode::kFile, "cannot make the folder '{}': {}", path_,
                 base::describe_errno(code));
    }
    std::string problem;
    folder_ = base::open_private_folder(files_, path_, base::FolderUse::kOwn,
                                        "compile kernels into a folder of your own", &problem);
    if (folder_ < 0) base::fail(ErrorCode::kFile, "{}", problem);
  }
  ~Target() { files_.close(folder_); }
  Target(const Target&) = delete;
  Target& operator=(const Target&) = delete;

  // The size of the file of a key. 0 if there is no file that a device would accept.
  std::int64_t bytes_of(const KernelKey& key) {
    std::vector<std::byte> file;
    std::string why;
    const base::FileResult read = base::try_read_private_file(
        files_, folder_, base::FolderUse::kOwn, kernel_file_name(key), kMaxKernelBytes, &file);
    return read.ok() && decode_kernel_file(file, key, &why) ? std::ssize(file) : 0;
  }

  std::int64_t write(const KernelKey& key, const CompiledKernel& kernel) {
    const std::string name = kernel_file_name(key);
    const std::vector<std::byte> file = encode_kernel_file(key, kernel);
    const base::FileResult written = base::try_write_file(files_, folder_, name, file, kFileMode);
    if (!written.ok()) {
      base::fail(ErrorCode::kFile, "cannot {} the compiled kernel '{}/{}': {}", written.step, path_,
                 name, base::describe_errno(written.code));
    }
    return std::ssize(file);
  }

 private:
  base::FileSystem files_;
  std::string path_;
  int folder_ = -1;
};

}  // namespace

std::string describe(const AheadJob& job) {
  const KernelSpec& spec = job.request.spec;
  return fmt::format("{}{} for {}, {}", spec.family,
                     spec.config.empty() ? "" : " (" + spec.config + ")", to_string(spec.arch),
                     to_string(job.compiler->kind()));
}

AheadResult compile_ahead(const std::vector<AheadJob>& jobs, const AheadOptions& options) {
  Target target(options.folder);
  AheadResult result;
  std::mutex mutex;  // guards the result and serialises calls of progress
  std::size_t done = 0;
  const auto one = [&](std::size_t number) {
    const AheadJob& job = jobs[number];
    if (options.cancelled && options.cancelled()) {
      const std::lock_guard guard(mutex);
      ++result.left;
      return;
    }
    std::int64_t AheadResult::*count = &AheadResult::there;
    std::int64_t bytes = target.bytes_of(job.request.key);
    std::optional<AheadFailure> failure;
    if (bytes == 0) {
      count = &AheadResult::compiled;
      const base::Span compiling("compile", job.request.spec.family);
      try {
        bytes = target.write(job.request.key, job.compiler->compile(job.request));
      } catch (const Error& error) {
        if (error.code() == ErrorCode::kFile) throw;
        failure = AheadFailure{number, error.code(), error.what()};
      }
    }
    const std::lock_guard guard(mutex);
    if (failure) {
      result.failures.push_back(std::move(*failure));
    } else {
      ++(result.*count);
      result.bytes += bytes;
    }
    ++done;
    if (options.progress) options.progress(done, job);
  };
  base::ThreadPool pool(options.threads);
  pool.parallel_for(std::ssize(jobs),
                    [&](std::int64_t index, int) { one(static_cast<std::size_t>(index)); });
  std::ranges::sort(result.failures, {}, &AheadFailure::job);
  return result;
}

}  // namespace annulus::jit
