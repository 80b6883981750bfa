#include "autotune/listing.h"

#include <fmt/core.h>

#include <algorithm>
#include <cerrno>

#include "base/private_folder.h"

namespace annulus::autotune {
namespace {

constexpr std::size_t kMaxNames = 10'000;

class Lister {
 public:
  explicit Lister(base::FileSystem& files) : files_(files) {}

  // Calls body(descriptor, names that end in `suffix`, sorted) for a folder that may be trusted.
  template <typename Body>
  void folder(const std::string& path, std::string_view suffix, Body body) {
    std::string problem;
    const int opened = base::open_private_folder(files_, path, base::FolderUse::kOwnOrRoots,
                                                 "it is not read", &problem);
    if (opened < 0) {
      if (!problem.empty()) listing_.ignored.push_back(problem);
      return;
    }
    std::vector<std::string> names;
    const int code = files_.list(opened, &names);
    std::erase_if(names, [&](const std::string& name) { return !name.ends_with(suffix); });
    std::ranges::sort(names);
    if (code < 0 || names.size() > kMaxNames) {
      listing_.ignored.push_back(fmt::format(
          "{}: {}", path, code < 0 ? base::describe_errno(code) : "too many files are in it"));
    } else {
      body(opened, names);
    }
    files_.close(opened);
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
    if (!found) {
      listing_.ignored.push_back(fmt::format("{}: {}", listed.path, why));
      return;
    }
    listed.entry = *found;
    listing_.entries.push_back(std::move(listed));
  }

  Listing take() { return std::move(listing_); }

 private:
  base::FileSystem& files_;
  Listing listing_;
};

}  // namespace

Listing list_entries(base::FileSystem& files, const std::vector<std::string>& folders) {
  Lister lister(files);
  for (const std::string& folder : folders) {
    lister.folder(folder, "", [&](int, const std::vector<std::string>& devices) {
      for (const std::string& device : devices) {
        const std::string path = folder + "/" + device;
        lister.folder(path, ".tuned", [&](int opened, const std::vector<std::string>& names) {
          for (const std::string& name : names) lister.entry(opened, path, name);
        });
      }
    });
  }
  return lister.take();
}

}  // namespace annulus::autotune
