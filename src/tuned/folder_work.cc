#include "tuned/folder_work.h"

#include <fcntl.h>
#include <fmt/core.h>

#include <algorithm>
#include <optional>
#include <span>
#include <utility>

#include "annulus/types.h"
#include "base/fail.h"
#include "base/private_folder.h"
#include "tuned/device_key.h"
#include "tuned/journal.h"
#include "tuned/opened.h"
#include "tuned/store.h"

namespace annulus::tuned {
namespace {

// Keeps a device's folder open and locked until the end of a scope.
class LockedFolder {
 public:
  // Takes ownership of a descriptor of the folder.
  LockedFolder(base::FileSystem& files, int opened)
      : opened_(files, opened), locked_(files, open_lock(files, opened)) {
    if (locked_.file >= 0) wait_for_lock(files, locked_.file, kLockWait);
  }
  int file() const { return opened_.file; }

 private:
  Opened opened_;
  Opened locked_;
};

// Opens a folder that the caller owns. Throws Error{kFile}.
int open_own(base::FileSystem& files, const std::string& folder) {
  std::string problem;
  const int opened = base::open_private_folder(files, folder, base::FolderUse::kOwn,
                                               "it is not changed", &problem);
  if (opened < 0) base::fail(ErrorCode::kFile, "{}", problem);
  return opened;
}

// The names of the files in a folder. Throws Error{kFile}.
std::vector<std::string> names_in(base::FileSystem& files, int folder, const std::string& path) {
  std::vector<std::string> names;
  if (const int code = files.list(folder, &names); code < 0) {
    base::fail(ErrorCode::kFile, "cannot list '{}': {}", path, base::describe_errno(code));
  }
  std::ranges::sort(names);
  return names;
}

// Returns the reason why a file could not be removed. Empty if it was removed.
std::string unlink(base::FileSystem& files, int folder, const std::string& path) {
  const int code = files.unlink(folder, path.substr(path.rfind('/') + 1));
  if (code >= 0) return {};
  return fmt::format("cannot remove '{}': {}", path, base::describe_errno(code));
}

std::string file_of(const Entry& entry) { return entry_name(entry) + std::string(kEntrySuffix); }

// The folder for the entry files of a device.
class DeviceFolder {
 public:
  DeviceFolder(base::FileSystem& files, const std::string& folder, const std::string& device)
      : files_(files), device_(device), folder_(files, open(files, folder, device, &path_)) {}

  // Throws if the folder has no room for these entries.
  void check_room(std::span<const PackedEntry> entries) {
    std::vector<std::string> there = names_in(files_, folder_.file(), path_);
    std::erase_if(there, [](const std::string& name) { return !name.ends_with(kEntrySuffix); });
    const auto is_new = [&](const PackedEntry& packed) {
      return !std::ranges::binary_search(there, file_of(packed.entry));
    };
    const std::size_t count =
        there.size() + static_cast<std::size_t>(std::ranges::count_if(entries, is_new));
    if (count <= kMaxEntries) return;
    base::fail(ErrorCode::kFile,
               "'{}' would hold {} tuned results, more than the {} that are read from one folder; "
               "use the pack itself: name it in the search path, or put it into '{}'",
               path_, count, kMaxEntries, folder_of(path_));
  }

  BroughtIn bring_in(const Entry& entry) {
    const std::string name = file_of(entry);
    const auto there = read(name);
    if (there && (*there == entry || better(*there, entry))) return BroughtIn::kKept;
    const base::FileResult written =
        base::try_write_file(files_, folder_.file(), name, encode_entry(entry, device_), 0600);
    if (!written.ok()) {
      base::fail(ErrorCode::kFile, "cannot {} '{}/{}': {}", written.step, path_, name,
                 base::describe_errno(written.code));
    }
    return there ? BroughtIn::kReplaced : BroughtIn::kAdded;
  }

 private:
  static int open(base::FileSystem& files, const std::string& folder, const std::string& device,
                  std::string* path) {
    const std::string name = folder_for(device);
    if (name.empty()) base::fail(ErrorCode::kInvalidFile, "'{:.200}' is not a device", device);
    std::string problem;
    const int opened = open_device_folder(files, folder, name, &problem);
    if (opened < 0) base::fail(ErrorCode::kFile, "{}", problem);
    *path = folder + "/" + name;
    return opened;
  }

  // The entry with this file name. Nothing if there is no undamaged entry of this device.
  std::optional<Entry> read(const std::string& name) {
    std::vector<std::byte> file;
    std::string device, why;
    const base::FileResult read = base::try_read_private_file(
        files_, folder_.file(), base::FolderUse::kOwn, name, kMaxEntryBytes, &file);
    if (!read.ok()) return std::nullopt;
    const auto entry = decode_entry(file, &device, &why);
    return entry && device == device_ ? entry : std::nullopt;
  }

  base::FileSystem& files_;
  std::string device_;
  std::string path_;
  LockedFolder folder_;
};

}  // namespace

std::vector<BroughtIn> bring_in(base::FileSystem& files, const std::string& folder,
                                const Pack& pack) {
  std::vector<BroughtIn> outcomes;
  const auto of_each_device = [&](auto body) {
    for (auto at = pack.begin(); at != pack.end();) {  // a pack is sorted by device
      const auto other = [&](const PackedEntry& each) { return each.device != at->device; };
      const auto end = std::find_if(at, pack.end(), other);
      DeviceFolder open(files, folder, at->device);
      body(open, std::span(at, end));
      at = end;
    }
  };
  of_each_device([](DeviceFolder& open, auto entries) { open.check_room(entries); });
  of_each_device([&](DeviceFolder& open, auto entries) {
    for (const PackedEntry& packed : entries) outcomes.push_back(open.bring_in(packed.entry));
  });
  return outcomes;
}

void remove_file(base::FileSystem& files, const std::string& path, const base::Digest& contents) {
  const LockedFolder folder(files, open_own(files, folder_of(path)));
  std::vector<std::byte> bytes;
  const base::FileResult read =
      base::try_read_private_file(files, folder.file(), base::FolderUse::kOwn,
                                  path.substr(path.rfind('/') + 1), kMaxEntryBytes, &bytes);
  if (!read.ok()) {
    base::fail(ErrorCode::kFile, "cannot {} '{}' before it is removed: {}", read.step, path,
               base::describe_private(read));
  }
  if (base::digest(bytes) != contents) {
    base::fail(ErrorCode::kFile, "'{}' has changed since it was read, and is not removed", path);
  }
  const std::string problem = unlink(files, folder.file(), path);
  if (!problem.empty()) base::fail(ErrorCode::kFile, "{}", problem);
}

std::vector<StaleJournal> remove_stale_journals(base::FileSystem& files, const std::string& folder,
                                                bool dry_run) {
  std::vector<StaleJournal> stale;
  const LockedFolder locked(files, open_own(files, folder));
  for (const std::string& name : names_in(files, locked.file(), folder)) {
    if (!name.ends_with(kJournalSuffix)) continue;
    const Opened journal{
        files, files.open(locked.file(), name, O_WRONLY | O_APPEND | O_NOFOLLOW | O_NONBLOCK, 0)};
    if (journal.file < 0 || files.lock(journal.file) < 0) continue;
    std::vector<std::byte> bytes;
    const base::FileResult read = base::try_read_private_file(
        files, locked.file(), base::FolderUse::kOwn, name, kMaxJournalBytes, &bytes);
    if (!read.ok()) continue;
    const std::string why = why_stale({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
    if (why.empty()) continue;
    const std::string path = folder + "/" + name;
    stale.push_back({path, why, dry_run ? std::string() : unlink(files, locked.file(), path)});
  }
  return stale;
}

}  // namespace annulus::tuned
