#include "tuned/listing.h"

#include <fmt/core.h>

#include <algorithm>
#include <cerrno>
#include <functional>

#include "annulus/types.h"
#include "base/fail.h"
#include "base/private_folder.h"
#include "tuned/journal.h"
#include "tuned/opened.h"
#include "tuned/store.h"
#include "tuned/tuned_pack.h"

namespace annulus::tuned {
namespace {

class Lister {
 public:
  explicit Lister(base::FileSystem& files) : files_(files) {}

  // Calls body(descriptor, its sorted names) if the folder may be trusted.
  template <typename Body>
  void folder(const std::string& path, Body body) {
    std::string problem;
    const Opened opened{files_,
                        base::open_private_folder(files_, path, base::FolderUse::kOwnOrRoots,
                                                  "it is not read", &problem)};
    if (opened.file < 0) {
      if (!problem.empty()) listing_.ignored.push_back(problem);
      return;
    }
    std::vector<std::string> names;
    const int code = files_.list(opened.file, &names);
    if (code < 0) {
      listing_.ignored.push_back(fmt::format("{}: {}", path, base::describe_errno(code)));
      return;
    }
    std::ranges::sort(names);
    body(opened.file, names);
  }

  // Lists the entries of a device's folder.
  void entries(const std::string& path, Crowded crowded) {
    folder(path, [&](int opened, std::vector<std::string> names) {
      const auto ends_in = [](std::string_view suffix) {
        return [suffix](const std::string& name) { return name.ends_with(suffix); };
      };
      if (std::ranges::any_of(names, ends_in(kJournalSuffix))) listing_.journaled.push_back(path);
      std::erase_if(names, std::not_fn(ends_in(kEntrySuffix)));
      if (crowded == Crowded::kIgnored && names.size() > kMaxEntries) {
        listing_.ignored.push_back(
            fmt::format("{}: it holds {} of them, more than {}", path, names.size(), kMaxEntries));
        return;
      }
      for (const std::string& name : names) entry(opened, path, name);
    });
  }

  void entry(int folder, const std::string& path, const std::string& name) {
    std::vector<std::byte> bytes;
    ListedEntry listed;
    listed.path = path + "/" + name;
    std::string why;
    const base::FileResult read = base::try_read_private_file(
        files_, folder, base::FolderUse::kOwnOrRoots, name, kMaxEntryBytes, &bytes);
    std::optional<Entry> found;
    if (!read.ok()) {
      why = fmt::format("cannot {} it: {}", read.step, base::describe_private(read));
    } else {
      found = decode_entry(bytes, &listed.device, &why);
    }
    const bool is_misnamed = found && name != entry_name(*found) + std::string(kEntrySuffix);
    if (is_misnamed) {
      why = "its name does not match its shape";
      found.reset();
    }
    const base::Digest contents = base::digest(bytes);
    if (!found) {
      const bool useless = read.ok() && (is_misnamed || !may_be_of_newer_build(bytes));
      listing_.ignored.push_back(fmt::format("{}: {}", listed.path, why));
      listing_.strays.push_back({listed.path, why, useless, contents});
      return;
    }
    listed.name = entry_name(*found);
    listed.entry = *found;
    listed.contents = contents;
    listing_.entries.push_back(std::move(listed));
  }

  void pack(int folder, const std::string& path, const std::string& name) {
    std::vector<std::byte> bytes;
    const base::FileResult read = base::try_read_private_file(
        files_, folder, base::FolderUse::kOwnOrRoots, name, kMaxPackBytes, &bytes);
    if (!read.ok()) {
      listing_.ignored.push_back(
          fmt::format("{}: cannot {} it: {}", path, read.step, base::describe_private(read)));
      return;
    }
    try {
      add(path, bytes);
    } catch (const Error& error) {
      listing_.ignored.push_back(fmt::format("{}: {}", path, error.what()));
    }
  }

  // Adds the entries of a pack's bytes. Throws as decode_pack() does.
  void add(const std::string& path, std::span<const std::byte> bytes) {
    std::vector<std::string> left_out;
    for (PackedEntry& packed : decode_pack(bytes, &left_out)) {
      ListedEntry listed;
      listed.path = path;
      listed.name = entry_name(packed.entry);
      listed.device = std::move(packed.device);
      listed.entry = std::move(packed.entry);
      listed.packed = true;
      listing_.entries.push_back(std::move(listed));
    }
    for (const std::string& line : left_out) listing_.ignored.push_back(path + ": " + line);
  }

  Listing take() { return std::move(listing_); }

 private:
  base::FileSystem& files_;
  Listing listing_;
};

}  // namespace

Listing list_entries(base::FileSystem& files, const std::vector<std::string>& places,
                     Crowded crowded) {
  Lister lister(files);
  for (const std::string& place : places) {
    if (is_pack(place)) {
      const std::string file = place.substr(place.rfind('/') + 1);
      lister.folder(folder_of(place), [&](int opened, const auto& names) {
        if (std::ranges::find(names, file) != names.end()) lister.pack(opened, place, file);
      });
      continue;
    }
    lister.folder(place, [&](int above, const std::vector<std::string>& names) {
      for (const std::string& device : names) {
        if (!is_pack(device)) lister.entries(place + "/" + device, crowded);
      }
      for (const std::string& name : names) {
        if (is_pack(name)) lister.pack(above, place + "/" + name, name);
      }
    });
  }
  return lister.take();
}

Listing read_packs(base::FileSystem& files, const std::vector<std::string>& paths) {
  Lister lister(files);
  for (const std::string& path : paths) {
    try {
      lister.add(path, base::read_file(files, path, kMaxPackBytes));
    } catch (const Error& error) {
      const std::string text = error.what();
      if (text.find(path) != text.npos) throw;
      base::fail(error.code(), "'{}': {}", path, text);
    }
  }
  return lister.take();
}

}  // namespace annulus::tuned
