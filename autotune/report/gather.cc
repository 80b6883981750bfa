#include "autotune/report/gather.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <iterator>
#include <optional>
#include <string_view>

#include "base/fail.h"
#include "tuned/journal.h"
#include "tuned/opened.h"
#include "tuned/tuned_pack.h"

namespace annulus::autotune::report {
namespace {

constexpr std::size_t kMaxNames = 10'000;  // the most files in a folder
constexpr int kDeepest = 1;                // folders of devices in a folder of results

void take_journal(base::FileSystem&, const std::string& path, Gathered* gathered) {
  gathered->journals.push_back({path, true});
}

void say_full(const std::string& path, const std::string& limit, Gathered* gathered) {
  if (!gathered->reached.insert(limit).second) return;
  gathered->left_out.push_back(
      fmt::format("'{}' and all after it: a report takes at most {}", path, limit));
}

// Whether there is room for one more file of any kind.
bool has_room_for_file(const std::string& path, Gathered* gathered) {
  if (gathered->taken.size() < gathered->limits.files) return true;
  say_full(path, fmt::format("{} files", gathered->limits.files), gathered);
  return false;
}

std::string max_entries(const Gathered& gathered) {
  return fmt::format("{} results", gathered.limits.entries);
}

// Whether there is room to read a file of results. If there is, its bytes count as read. The bytes
// of a file larger than `largest` do not count, because it is not read.
bool has_room_for_entries(base::FileSystem& files, const std::string& path, std::int64_t largest,
                          Gathered* gathered) {
  const GatherLimits& most = gathered->limits;
  if (gathered->entries.size() >= most.entries) {
    say_full(path, max_entries(*gathered), gathered);
    return false;
  }
  const tuned::Opened opened(files,
                             files.open(base::kHere, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK, 0));
  base::FileSystem::Status status;
  // The code that reads the file reports the error.
  if (opened.file < 0 || files.status(opened.file, &status) < 0) return true;
  const std::int64_t bytes = status.bytes > largest ? 0 : status.bytes;
  if (bytes > most.bytes - gathered->bytes) {
    say_full(path, fmt::format("{} bytes of results", most.bytes), gathered);
    return false;
  }
  gathered->bytes += bytes;
  return true;
}

void take_entry(base::FileSystem& files, const std::string& path, Gathered* gathered) {
  if (!has_room_for_entries(files, path, tuned::kMaxEntryBytes, gathered)) return;
  tuned::ListedEntry listed;
  listed.path = path;
  std::string why;
  const std::optional<tuned::Entry> entry = tuned::decode_entry(
      base::read_file(files, path, tuned::kMaxEntryBytes), &listed.device, &why);
  if (!entry) base::fail(ErrorCode::kInvalidFile, "'{}' is not a tuned result: {}", path, why);
  listed.name = tuned::entry_name(*entry);
  listed.entry = *entry;
  gathered->entries.push_back(std::move(listed));
}

void take_pack(base::FileSystem& files, const std::string& path, Gathered* gathered) {
  if (!has_room_for_entries(files, path, tuned::kMaxPackBytes, gathered)) return;
  tuned::Listing listing = tuned::read_packs(files, {path});
  const std::size_t room = gathered->limits.entries - gathered->entries.size();
  if (listing.entries.size() > room) {
    gathered->left_out.push_back(fmt::format("'{}': {} of {} results, as a report takes at most {}",
                                             path, listing.entries.size() - room,
                                             listing.entries.size(), max_entries(*gathered)));
    listing.entries.resize(room);
  }
  std::ranges::move(listing.entries, std::back_inserter(gathered->entries));
  std::ranges::move(listing.ignored, std::back_inserter(gathered->left_out));
}

struct Kind {
  std::string_view suffix;  // the suffix of its name in a folder
  std::string_view magic;   // its first bytes
  void (*take)(base::FileSystem& files, const std::string& path, Gathered* gathered);
};
constexpr Kind kKinds[] = {{tuned::kJournalSuffix, "annulus-journal ", take_journal},
                           {tuned::kPackSuffix, "annulus-tuned-pack ", take_pack},
                           {tuned::kEntrySuffix, "annulus-tuned ", take_entry}};

// The first bytes of a file: 32, or all if it has fewer.
std::string head_of(base::FileSystem& files, const std::string& path) {
  const tuned::Opened opened(files,
                             files.open(base::kHere, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK, 0));
  std::string head(32, '\0');
  const std::int64_t count =
      opened.file < 0 ? opened.file : files.read(opened.file, head.data(), head.size());
  if (count < 0) {
    base::fail(ErrorCode::kFile, "cannot read '{}': {}", path, base::describe_errno(count));
  }
  head.resize(static_cast<std::size_t>(count));
  return head;
}

void take_file(base::FileSystem& files, const std::string& path, Gathered* gathered) {
  if (gathered->taken.contains(path) || !has_room_for_file(path, gathered)) return;
  gathered->taken.insert(path);
  const std::string head = head_of(files, path);
  for (const Kind& kind : kKinds) {
    if (head.starts_with(kind.magic)) return kind.take(files, path, gathered);
  }
  base::fail(ErrorCode::kInvalidFile, "'{}' is not a journal, a tuned result or a pack of them",
             path);
}

// For a file that is one of many in a folder: an error leaves out only this file.
void take_found(base::FileSystem& files, const Kind& kind, const std::string& path,
                Gathered* gathered) {
  if (gathered->taken.contains(path) || !has_room_for_file(path, gathered)) return;
  gathered->taken.insert(path);
  const std::size_t journals = gathered->journals.size();
  try {
    kind.take(files, path, gathered);
  } catch (const Error& error) {
    if (error.code() == ErrorCode::kOutOfMemory) throw;
    gathered->left_out.emplace_back(error.what());
  }
  for (std::size_t i = journals; i < gathered->journals.size(); ++i) {
    gathered->journals[i].named = false;
  }
}

void take_folder(base::FileSystem& files, const std::string& path, int opened, int depth,
                 Gathered* gathered) {
  std::vector<std::string> names;
  const int code = files.list(opened, &names);
  if (code < 0 || names.size() > kMaxNames) {
    gathered->left_out.push_back(fmt::format(
        "'{}': {}", path, code < 0 ? base::describe_errno(code) : "too many files are in it"));
    return;
  }
  std::ranges::sort(names);
  for (const std::string& name : names) {
    const std::string below = path + (path.ends_with('/') ? "" : "/") + name;
    const auto kind =
        std::ranges::find_if(kKinds, [&](const Kind& each) { return name.ends_with(each.suffix); });
    if (kind != std::end(kKinds)) {
      take_found(files, *kind, below, gathered);
    } else if (depth < kDeepest && !name.starts_with('.')) {
      const tuned::Opened folder(
          files, files.open(opened, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0));
      if (folder.file >= 0) take_folder(files, below, folder.file, depth + 1, gathered);
    }
  }
}

// Returns false if the path is not a folder.
bool try_folder(base::FileSystem& files, const std::string& path, Gathered* gathered) {
  const tuned::Opened opened(files,
                             files.open(base::kHere, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0));
  if (opened.file == -ENOTDIR) return false;
  if (opened.file < 0) {
    base::fail(ErrorCode::kFile, "cannot open '{}': {}", path, base::describe_errno(opened.file));
  }
  take_folder(files, path, opened.file, 0, gathered);
  return true;
}

}  // namespace

void gather(base::FileSystem& files, const std::string& path, Gathered* gathered) {
  if (!try_folder(files, path, gathered)) take_file(files, path, gathered);
}

void gather_if_there(base::FileSystem& files, const std::string& path, Gathered* gathered) {
  const tuned::Opened opened(files,
                             files.open(base::kHere, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK, 0));
  if (opened.file == -ENOENT) return;
  try {
    gather(files, path, gathered);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kFile && error.code() != ErrorCode::kInvalidFile) throw;
    gathered->left_out.emplace_back(error.what());
  }
}

}  // namespace annulus::autotune::report
