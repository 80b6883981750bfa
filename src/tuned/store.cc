#include "tuned/store.h"

#include <fcntl.h>
#include <fmt/core.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <utility>

#include "attention/kernels/withheld.h"
#include "base/fail.h"
#include "base/private_folder.h"
#include "tuned/opened.h"
#include "tuned/space.h"
#include "tuned/tuned_pack.h"

namespace annulus::tuned {
namespace {

std::string file_name(const Entry& entry) { return entry_name(entry) + std::string(kEntrySuffix); }

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

bool is_pack(const std::string& path) { return path.ends_with(kPackSuffix); }

std::string folder_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  if (slash == path.npos) return {};
  return path.substr(0, std::max<std::size_t>(slash, 1));
}

TunedStore::TunedStore(StoreOptions options, base::Log log, std::shared_ptr<base::FileSystem> files)
    : options_(std::move(options)),
      log_(std::move(log)),
      files_(files ? std::move(files) : std::make_shared<base::FileSystem>()),
      own_(options_.driver_version),
      relatives_(options_.driver_version) {}

// No file is accessed under mutex_, so a thread that only looks results up does not wait for files
// after the folders were read.
void TunedStore::load() {
  if (loaded_.load(std::memory_order_acquire)) return;
  const std::lock_guard reader(reading_);
  if (loaded_.load(std::memory_order_relaxed)) return;
  int place = 0;
  for (const std::vector<std::string>* path : {&options_.folders, &options_.shipped}) {
    for (const std::string& each : *path) {
      load_place(each, place);
      place += 2;  // one position for single files and one for packs
    }
  }
  loaded_.store(true, std::memory_order_release);
}

// Opens a folder that may be trusted. Returns a descriptor, or a negative number; then it writes a
// line to the log, unless the folder does not exist.
int TunedStore::open_for_reading(const std::string& path) {
  std::string problem;
  const int opened = base::open_private_folder(*files_, path, base::FolderUse::kOwnOrRoots,
                                               kFolderRemedy, &problem);
  if (!problem.empty()) {
    log_.write(base::LogLevel::kWarning, "tuned results are not read from there: {}", problem);
  }
  return opened;
}

void TunedStore::load_place(const std::string& path, int place) {
  if (!is_pack(path)) return load_folder(path, place);
  const Opened folder{*files_, open_for_reading(folder_of(path))};
  if (folder.file >= 0) load_pack(folder.file, path, path.substr(path.rfind('/') + 1), place);
}

void TunedStore::load_folder(const std::string& folder, int place) {
  const Opened above{*files_, open_for_reading(folder)};
  if (above.file < 0) return;
  load_entries(folder + "/" + options_.device.folder, place, false);
  std::vector<std::string> names;
  if (files_->list(above.file, &names) < 0) return;
  std::ranges::sort(names);
  const std::string stem = folder_stem(options_.device);
  for (const std::string& name : names) {
    if (is_pack(name)) {
      load_pack(above.file, folder + "/" + name, name, place + 1);
    } else if (!options_.device.simulated && name.starts_with(stem) &&
               name != options_.device.folder) {
      load_entries(folder + "/" + name, place, true);
    }
  }
}

// Reads the single files of one device. Files of a device that is not a relative are skipped
// without a message. The digest in a file's name must be the digest of its shape, so that a copied
// file cannot be used for another shape.
void TunedStore::load_entries(const std::string& path, int place, bool of_relatives) {
  const Opened opened{*files_, open_for_reading(path)};
  std::vector<std::string> names;
  if (opened.file < 0 || files_->list(opened.file, &names) < 0) return;
  std::erase_if(names, [](const std::string& name) { return !name.ends_with(kEntrySuffix); });
  std::ranges::sort(names);
  if (names.size() > kMaxEntries) {
    log_.write(base::LogLevel::kWarning,
               "tuned results are not read from there: '{}' holds {} of them, more than {}", path,
               names.size(), kMaxEntries);
    return;
  }
  for (const std::string& name : names) {
    std::string device;
    auto entry = read_entry(opened.file, path, name, of_relatives, &device);
    if (!entry) continue;
    const bool relative = of_relatives && are_relatives(device, options_.device.identity);
    std::string why = of_relatives ? "" : why_other(device, options_.device.identity);
    if (of_relatives && !relative) return;  // all other files in this folder are skipped too
    if (why.empty()) why = why_not(*entry);
    if (why.empty() && name != file_name(*entry)) why = "its name does not match its shape";
    if (why.empty()) {
      (relative ? relatives_ : own_)
          .put({std::move(*entry), path + "/" + name, place, relative ? name_in(device) : ""});
      continue;
    }
    log_.write(is_fault(*entry) ? base::LogLevel::kWarning : base::LogLevel::kInfo,
               "the tuned result '{}/{}' is not used: {}", path, name, why);
  }
}

// Reads the entries of a pack for this device and its relatives. Writes one line to the log for all
// problems of the pack.
void TunedStore::load_pack(int folder, const std::string& path, const std::string& name,
                           int place) {
  std::vector<std::byte> file;
  const base::FileResult read = base::try_read_private_file(
      *files_, folder, base::FolderUse::kOwnOrRoots, name, kMaxPackBytes, &file);
  if (read.code == -ENOENT) return;
  const std::string& own = options_.device.identity;
  try {
    if (!read.ok()) {
      base::fail(ErrorCode::kFile, "cannot {} it: {}", read.step, base::describe_private(read));
    }
    std::vector<std::string> left_out;
    Pack pack = decode_pack(file, &left_out, [&](std::string_view device) {
      return device == own || are_relatives(std::string(device), own);
    });
    for (PackedEntry& packed : pack) {
      const bool relative = packed.device != own;
      const std::string why = why_not(packed.entry);
      if (why.empty()) {
        (relative ? relatives_ : own_)
            .put({std::move(packed.entry), path, place, relative ? name_in(packed.device) : ""});
      } else if (is_fault(packed.entry) && !relative) {
        left_out.push_back(fmt::format("{}: {}", entry_name(packed.entry), why));
      }
    }
    if (left_out.empty()) return;
    log_.write(base::LogLevel::kWarning, "{} of the tuned results of '{}' are not used: {}",
               left_out.size(), path, left_out.front());
  } catch (const Error& error) {
    log_.write(base::LogLevel::kWarning, "the tuned results of '{}' are not used: {}", path,
               error.what());
  }
}

std::string TunedStore::why_withheld(const Entry& entry) const {
  const attention::Dims dims = {entry.shape.dim_qk, entry.shape.dim_v};
  return attention::why_withheld(entry.config, dims, options_.limits).value_or("");
}

bool TunedStore::is_fault(const Entry& entry) const {
  return why_outdated(entry).empty() && why_withheld(entry).empty();
}

std::string TunedStore::why_not(const Entry& entry) const {
  if (entry.predicted != options_.device.simulated) {
    return entry.predicted ? "it is a prediction, and this device is real"
                           : "it is a measurement, and this device is simulated";
  }
  if (std::string why = why_outdated(entry); !why.empty()) return why;
  if (auto reason = why_outside(entry.config, entry.shape, options_.limits)) {
    return fmt::format("its configuration is not legal: {}", *reason);
  }
  return why_withheld(entry);
}

// Reads one file. Returns nothing if it has no valid entry; then it writes a line to the log,
// unless `quiet`.
std::optional<Entry> TunedStore::read_entry(int folder, const std::string& path,
                                            const std::string& name, bool quiet,
                                            std::string* device) {
  std::vector<std::byte> file;
  std::string why;
  const base::FileResult read = base::try_read_private_file(
      *files_, folder, base::FolderUse::kOwnOrRoots, name, kMaxEntryBytes, &file);
  if (read.code == -ENOENT) return std::nullopt;
  if (!read.ok()) {
    why = fmt::format("cannot {} it: {}", read.step, base::describe_private(read));
  } else if (auto entry = decode_entry(file, device, &why)) {
    return entry;
  }
  if (!quiet) {
    log_.write(base::LogLevel::kWarning, "the tuned result '{}/{}' is not used: {}", path, name,
               why);
  }
  return std::nullopt;
}

std::optional<TunedStore::Found> TunedStore::find_exact(const ShapeKey& shape) {
  load();
  const std::lock_guard guard(mutex_);
  const Kept* kept = own_.exact(shape);
  if (kept == nullptr) return std::nullopt;
  return Found{kept->entry, kept->path, 0};
}

std::vector<attention::KernelConfig> TunedStore::winners(const ShapeKey& shape, std::size_t most) {
  load();
  const std::lock_guard guard(mutex_);
  std::vector<attention::KernelConfig> all = own_.winners(shape, most);
  for (const attention::KernelConfig& config : relatives_.winners(shape, most)) {
    if (all.size() == most) break;
    if (std::ranges::find(all, config) == all.end()) all.push_back(config);
  }
  return all;
}

std::optional<TunedStore::Found> TunedStore::find(const ShapeKey& shape) {
  load();
  const std::lock_guard guard(mutex_);
  for (const EntryIndex* index : {&own_, &relatives_}) {
    if (const EntryIndex::Near near = index->nearest(shape); near.kept != nullptr) {
      return Found{near.kept->entry, near.kept->path, near.distance, near.kept->relative};
    }
  }
  return std::nullopt;
}

void TunedStore::forget(const Found& found) {
  load();
  const std::lock_guard guard(mutex_);
  (found.relative.empty() ? own_ : relatives_).erase(found.entry.shape);
}

bool TunedStore::empty() {
  load();
  const std::lock_guard guard(mutex_);
  return own_.empty() && relatives_.empty();
}

std::optional<std::string> TunedStore::writable_folder(std::string* problem) {
  problem->clear();
  for (const std::string& folder : options_.folders) {
    if (is_pack(folder)) continue;
    std::string why;
    const Opened opened{*files_, open_device_folder(*files_, folder, options_.device.folder, &why)};
    if (opened.file >= 0) {
      // Whether the folder can be written to is found only by creating a file, and the lock file is
      // needed anyway.
      const Opened locked{*files_, open_lock(*files_, opened.file)};
      if (locked.file >= 0) return folder + "/" + options_.device.folder;
      why = fmt::format("cannot write to '{}': {}", folder, base::describe_errno(locked.file));
    }
    *problem += (problem->empty() ? "" : "; ") + why;
  }
  if (problem->empty()) *problem = kNoFolder;
  return std::nullopt;
}

// The best entry for the shape that a folder has for this device and these kernels. *names receives
// the file names of all such entries: one shape has several if the winner's family has changed.
// *fits receives whether the folder may take another file; if it has too many, nothing is read.
std::optional<Entry> TunedStore::read_stored(int folder, const Entry& entry,
                                             std::vector<std::string>* names, bool* fits) const {
  std::vector<std::string> all;
  std::optional<Entry> best;
  *fits = true;
  if (files_->list(folder, &all) < 0) return best;
  std::erase_if(all, [](const std::string& name) { return !name.ends_with(kEntrySuffix); });
  *fits = all.size() < kMaxEntries ||
          (all.size() == kMaxEntries && std::ranges::find(all, file_name(entry)) != all.end());
  const std::string begin = digest(entry.shape).hex();
  for (const std::string& name : all) {
    if (!name.starts_with(begin)) continue;
    std::vector<std::byte> file;
    std::string device, why;
    const base::FileResult read = base::try_read_private_file(
        *files_, folder, base::FolderUse::kOwnOrRoots, name, kMaxEntryBytes, &file);
    const auto there = read.ok() ? decode_entry(file, &device, &why) : std::nullopt;
    if (!there || device != options_.device.identity || name != file_name(*there) ||
        !why_not(*there).empty()) {
      continue;
    }
    names->push_back(name);
    if (!best || better(*there, *best)) best = there;
  }
  return best;
}

// Reads the currently stored entry under the folder's lock, and writes the new entry unless the
// stored one is better. Returns nothing if nothing could be written; then *problem has the reason,
// and *is_full is set if the disk or quota was full.
std::optional<TunedStore::Stored> TunedStore::store_in(const std::string& folder,
                                                       const Entry& entry, bool replace,
                                                       Entry* stored_entry, std::string* problem,
                                                       bool* is_full) {
  const Opened opened{*files_,
                      open_device_folder(*files_, folder, options_.device.folder, problem)};
  if (opened.file < 0) return std::nullopt;
  const std::string path = folder + "/" + options_.device.folder;
  const std::string name = file_name(entry);
  const Opened locked{*files_, open_lock(*files_, opened.file)};
  if (locked.file >= 0) wait_for_lock(*files_, locked.file, options_.lock_wait);
  Stored stored;
  stored.path = path + "/" + name;
  std::vector<std::string> names;
  bool fits = true;
  const auto there = read_stored(opened.file, entry, &names, &fits);
  if (!replace && there && better(*there, entry)) {
    stored.outcome = Outcome::kKept;
    stored.path = path + "/" + file_name(*there);
    *stored_entry = *there;
    return stored;
  }
  if (!fits) {
    *problem = fmt::format(
        "'{}' would hold more than the {} tuned results that are read from one folder; export them "
        "to a pack, which is used without importing it, and empty the folder",
        path, kMaxEntries);
    return std::nullopt;
  }
  const base::FileResult written = base::try_write_file(
      *files_, opened.file, name, encode_entry(entry, options_.device.identity), 0600);
  if (!written.ok()) {
    *problem = fmt::format("cannot {} '{}': {}", written.step, stored.path,
                           base::describe_errno(written.code));
    *is_full = written.code == -ENOSPC || written.code == -EDQUOT;
    return std::nullopt;
  }
  // The result that is replaced may be for other kernels, and then its file has another name.
  for (const std::string& other : names) {
    if (replace && other != name) files_->unlink(opened.file, other);
  }
  stored.outcome = Outcome::kStored;
  *stored_entry = entry;
  base::sweep_temporaries(*files_, opened.file, name);
  return stored;
}

// A search took minutes, so its result must not be lost because one call fails: each folder of the
// path is tried, and then all of them once more. mutex_ is not held meanwhile, because another
// process may hold the lock of a folder for a long time, and plans that look results up would wait
// as well. If nothing can be written, the result is kept in memory. If folders were given, a
// warning is logged.
TunedStore::Stored TunedStore::store(const Entry& entry, bool replace,
                                     const std::function<void()>& make_room) {
  constexpr int kAttempts = 2;
  const std::lock_guard one_writer(writing_);
  std::optional<Stored> stored;
  Entry kept = entry;
  std::string problems;
  for (int attempt = 0; attempt < kAttempts && !stored; ++attempt) {
    problems.clear();
    bool is_full = false;
    for (const std::string& folder : options_.folders) {
      if (is_pack(folder)) continue;
      std::string problem;
      bool here_is_full = false;
      stored = store_in(folder, entry, replace, &kept, &problem, &here_is_full);
      if (stored) break;
      is_full = is_full || here_is_full;
      problems += (problems.empty() ? "" : "; ") + problem;
    }
    if (is_full && make_room && attempt == 0) make_room();
  }
  if (!stored) {
    stored.emplace();
    // If no folder was given, the caller wants results to be kept in memory.
    stored->problem = problems.empty() ? kNoFolder : problems;
    const std::vector<std::byte> file = encode_entry(entry, options_.device.identity);
    stored->file_name = options_.device.folder + "/" + file_name(entry);
    stored->file.assign(reinterpret_cast<const char*>(file.data()), file.size());
    if (!options_.folders.empty()) {
      log_.write(base::LogLevel::kWarning, "a tuned result is kept in memory only: {}",
                 stored->problem);
    }
  }
  load();
  const std::lock_guard guard(mutex_);
  own_.replace({kept, stored->path});
  return *stored;
}

}  // namespace annulus::tuned
