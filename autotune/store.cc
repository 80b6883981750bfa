#include "autotune/store.h"

#include <fcntl.h>
#include <fmt/core.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <thread>
#include <tuple>

#include "autotune/space.h"
#include "base/private_folder.h"

namespace annulus::autotune {
namespace {

constexpr std::string_view kSuffix = ".tuned";
constexpr char kLockName[] = "tuned.lock";
// A folder with more files than this is not one that a store has filled.
constexpr std::size_t kMaxEntries = 10'000;
// A temporary older than this was left by a killed writer, since writing takes far less time.
constexpr std::int64_t kAbandonedSeconds = 3600;
constexpr char kNoFolder[] = "no folder is set (ANNULUS_TUNED, XDG_CACHE_HOME or HOME)";
constexpr char kRemedy[] = "set ANNULUS_TUNED to a folder of your own";

std::string file_name(const ShapeKey& shape) { return digest(shape).hex() + std::string(kSuffix); }

// Closes a descriptor at the end of a scope.
struct Opened {
  base::FileSystem& files;
  int file;
  ~Opened() {
    if (file >= 0) files.close(file);
  }
};

// Waits for the lock of a folder of results. The lock only keeps two processes that tune one shape
// from overwriting the better result; without it, where locks do not work, the last writer wins.
// The kernel releases it when the descriptor is closed.
void lock(base::FileSystem& files, int file, std::chrono::milliseconds wait) {
  using Clock = std::chrono::steady_clock;
  constexpr std::chrono::milliseconds kPoll{5};
  const Clock::time_point end = Clock::now() + wait;
  while (Clock::now() < end) {
    const int code = files.lock(file);
    if (code != -EWOULDBLOCK && code != -EINTR) return;
    std::this_thread::sleep_for(kPoll);
  }
}

}  // namespace

std::vector<std::string> split_path(const std::string& text) {
  std::vector<std::string> folders;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(':', begin), text.size());
    std::string folder = text.substr(begin, end - begin);
    while (folder.size() > 1 && folder.back() == '/') folder.pop_back();
    if (!folder.empty() && std::ranges::find(folders, folder) == folders.end()) {
      folders.push_back(std::move(folder));
    }
    begin = end + 1;
  }
  return folders;
}

TunedStore::TunedStore(StoreOptions options, base::Log log, std::shared_ptr<base::FileSystem> files)
    : options_(std::move(options)),
      log_(std::move(log)),
      files_(files ? std::move(files) : std::make_shared<base::FileSystem>()) {}

void TunedStore::load() {
  if (loaded_) return;
  loaded_ = true;
  for (const std::string& folder : options_.folders) load_folder(folder);
}

// Both the folder of the path and the device's folder in it must be private. Names are sorted, and
// of two entries for one shape the first one found is kept.
void TunedStore::load_folder(const std::string& folder) {
  const auto open = [&](const std::string& path) {
    std::string problem;
    const int opened =
        base::open_private_folder(*files_, path, base::FolderUse::kOwnOrRoots, kRemedy, &problem);
    if (!problem.empty()) {
      log_.write(base::LogLevel::kWarning, "tuned results are not read from there: {}", problem);
    }
    return opened;
  };
  const Opened above{*files_, open(folder)};
  if (above.file < 0) return;
  const std::string path = folder + "/" + options_.device.folder;
  const Opened opened{*files_, open(path)};
  std::vector<std::string> names;
  if (opened.file < 0 || files_->list(opened.file, &names) < 0) return;
  std::erase_if(names, [](const std::string& name) { return !name.ends_with(kSuffix); });
  std::ranges::sort(names);
  if (names.size() > kMaxEntries) {
    log_.write(base::LogLevel::kWarning,
               "tuned results are not read from there: '{}' holds {} of them, more than {}", path,
               names.size(), kMaxEntries);
    return;
  }
  for (const std::string& name : names) {
    if (auto entry = read_entry(opened.file, path, name, false)) {
      entries_.try_emplace(entry->shape, Kept{*entry, path + "/" + name});
    }
  }
}

// Reads and checks one file; empty where it is not used, with a line in the log unless `quiet`. The
// digest of its name must be that of its shape, so that a copied file cannot stand for another
// shape.
std::optional<Entry> TunedStore::read_entry(int folder, const std::string& path,
                                            const std::string& name, bool quiet) {
  std::vector<std::byte> file;
  std::string why, device;
  const base::FileResult read = base::try_read_private_file(
      *files_, folder, base::FolderUse::kOwnOrRoots, name, kMaxEntryBytes, &file);
  std::optional<Entry> entry;
  if (read.code == -ENOENT) return std::nullopt;
  if (!read.ok()) {
    why = fmt::format("cannot {} it: {}", read.step, base::describe_private(read));
  } else {
    entry = decode_entry(file, &device, &why);
  }
  if (entry) {
    const attention::Dims dims = {entry->shape.dim_qk, entry->shape.dim_v};
    if (device != options_.device.identity) {
      why = why_other(device, options_.device.identity);
    } else if (entry->predicted != options_.device.simulated) {
      why = entry->predicted ? "it is a prediction, and this device is real"
                             : "it is a measurement, and this device is simulated";
    } else if (name != file_name(entry->shape)) {
      why = "its name is not that of its shape";
    } else if (auto reason =
                   why_outside(entry->config, dims, entry->shape.dtype, options_.limits)) {
      why = fmt::format("its configuration is none: {}", *reason);
    } else {
      return entry;
    }
  }
  if (!quiet) {
    log_.write(base::LogLevel::kWarning, "the tuned result '{}/{}' is not used: {}", path, name,
               why);
  }
  return std::nullopt;
}

std::optional<TunedStore::Found> TunedStore::find_exact(const ShapeKey& shape) {
  const std::lock_guard guard(mutex_);
  load();
  const auto found = entries_.find(shape);
  if (found == entries_.end()) return std::nullopt;
  return Found{found->second.entry, found->second.path, 0};
}

std::optional<TunedStore::Found> TunedStore::find(const ShapeKey& shape) {
  if (auto exact = find_exact(shape)) return exact;
  const std::lock_guard guard(mutex_);
  const std::pair<const ShapeKey, Kept>* nearest = nullptr;
  const auto rank = [&](const ShapeKey& key) {
    return std::tuple(length_distance(key, shape).value_or(kMaxDistance + 1),
                      std::abs(key.queries - shape.queries), -key.queries - key.keys);
  };
  for (const auto& candidate : entries_) {
    if (std::get<0>(rank(candidate.first)) > kMaxDistance) continue;
    if (!nearest || rank(candidate.first) < rank(nearest->first)) nearest = &candidate;
  }
  if (!nearest) return std::nullopt;
  return Found{nearest->second.entry, nearest->second.path, std::get<0>(rank(nearest->first))};
}

void TunedStore::forget(const ShapeKey& shape) {
  const std::lock_guard guard(mutex_);
  entries_.erase(shape);
}

bool TunedStore::empty() {
  const std::lock_guard guard(mutex_);
  load();
  return entries_.empty();
}

int TunedStore::open_for_writing(const std::string& folder, std::string* problem) {
  const Opened above{
      *files_, base::open_private_folder(*files_, folder, base::FolderUse::kOwn, kRemedy, problem)};
  if (above.file < 0) return -1;
  return base::open_private_folder(*files_, folder + "/" + options_.device.folder,
                                   base::FolderUse::kOwn, kRemedy, problem);
}

std::optional<std::string> TunedStore::writable_folder(std::string* problem) {
  problem->clear();
  for (const std::string& folder : options_.folders) {
    std::string why;
    const Opened opened{*files_, open_for_writing(folder, &why)};
    if (opened.file >= 0) {
      // Only creating a file tells whether the folder can be written to, and the lock file is
      // needed anyway.
      const Opened locked{
          *files_, files_->open(opened.file, kLockName, O_RDWR | O_CREAT | O_NOFOLLOW, 0600)};
      if (locked.file >= 0) return folder + "/" + options_.device.folder;
      why = fmt::format("cannot write to '{}': {}", folder, base::describe_errno(locked.file));
    }
    *problem += (problem->empty() ? "" : "; ") + why;
  }
  if (options_.folders.empty()) {
    *problem = kNoFolder;
  }
  return std::nullopt;
}

// Under the folder's lock, reads the entry that is stored now and writes the new one only where
// that is not better. Empty, with *problem saying why, where nothing could be written.
std::optional<TunedStore::Stored> TunedStore::store_in(const std::string& folder,
                                                       const Entry& entry, bool replace,
                                                       Entry* stored_entry, std::string* problem) {
  const Opened opened{*files_, open_for_writing(folder, problem)};
  if (opened.file < 0) return std::nullopt;
  const std::string path = folder + "/" + options_.device.folder;
  const std::string name = file_name(entry.shape);
  const Opened locked{*files_,
                      files_->open(opened.file, kLockName, O_RDWR | O_CREAT | O_NOFOLLOW, 0600)};
  if (locked.file >= 0) lock(*files_, locked.file, options_.lock_wait);
  Stored stored;
  stored.path = path + "/" + name;
  if (!replace) {
    const auto there = read_entry(opened.file, path, name, true);
    if (there && better(*there, entry)) {
      stored.outcome = Outcome::kKept;
      *stored_entry = *there;
      return stored;
    }
  }
  const base::FileResult written = base::try_write_file(
      *files_, opened.file, name, encode_entry(entry, options_.device.identity), 0600);
  if (!written.ok()) {
    *problem = fmt::format("cannot {} '{}': {}", written.step, stored.path,
                           base::describe_errno(written.code));
    return std::nullopt;
  }
  stored.outcome = Outcome::kStored;
  *stored_entry = entry;
  sweep(opened.file, name);
  return stored;
}

// A search took minutes, so its result does not go with the first call that fails: each folder of
// the path is tried, and all of them once more. mutex_ is not held meanwhile, as another process
// may hold the lock of a folder for long, and plans that look results up would wait for it as well.
// If nothing can be written, the result is kept in memory, with a warning if folders were given.
TunedStore::Stored TunedStore::store(const Entry& entry, bool replace) {
  constexpr int kAttempts = 2;
  const std::lock_guard one_writer(writing_);
  std::optional<Stored> stored;
  Entry kept = entry;
  std::string problems;
  for (int attempt = 0; attempt < kAttempts && !stored; ++attempt) {
    problems.clear();
    for (const std::string& folder : options_.folders) {
      std::string problem;
      stored = store_in(folder, entry, replace, &kept, &problem);
      if (stored) break;
      problems += (problems.empty() ? "" : "; ") + problem;
    }
  }
  if (!stored) {
    stored.emplace();
    // Without a folder, keeping results in memory is what the caller asked for.
    stored->problem = options_.folders.empty() ? kNoFolder : problems;
    const std::vector<std::byte> file = encode_entry(entry, options_.device.identity);
    stored->file_name = options_.device.folder + "/" + file_name(entry.shape);
    stored->file.assign(reinterpret_cast<const char*>(file.data()), file.size());
    if (!options_.folders.empty()) {
      log_.write(base::LogLevel::kWarning, "a tuned result is kept in memory only: {}",
                 stored->problem);
    }
  }
  const std::lock_guard guard(mutex_);
  load();
  entries_.insert_or_assign(kept.shape, Kept{kept, stored->path});
  return *stored;
}

// Removes temporaries that killed writers left behind. The time is that of `newest`, a file written
// just now: a clock of this machine may be hours from that of the machine which keeps the files.
void TunedStore::sweep(int folder, const std::string& newest) {
  std::vector<std::string> names;
  if (files_->list(folder, &names) < 0) return;
  const std::optional<std::int64_t> now = base::modified_time(*files_, folder, newest);
  if (!now) return;
  for (const std::string& name : names) {
    if (!name.starts_with(base::kTemporaryPrefix)) continue;
    const Opened file{*files_, files_->open(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0)};
    base::FileSystem::Status status;
    if (file.file < 0 || files_->status(file.file, &status) < 0) continue;
    if (*now - status.modified > kAbandonedSeconds) files_->unlink(folder, name);
  }
}

}  // namespace annulus::autotune
