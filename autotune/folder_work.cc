#include "autotune/folder_work.h"

#include <fmt/core.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "annulus/error.h"
#include "autotune/device_key.h"
#include "autotune/opened.h"
#include "autotune/store.h"
#include "base/fail.h"
#include "base/private_folder.h"

namespace annulus::autotune {
namespace {

// Where the files of a device's entries are written to.
class DeviceFolder {
 public:
  DeviceFolder(base::FileSystem& files, const std::string& folder, const std::string& device)
      : files_(files),
        device_(device),
        opened_(files, open(files, folder, device, &path_)),
        locked_(files, open_lock(files, opened_.file)) {
    if (locked_.file >= 0) wait_for_lock(files_, locked_.file, kLockWait);
  }

  BroughtIn bring_in(const Entry& entry) {
    const std::string name = entry_name(entry) + std::string(kEntrySuffix);
    const auto there = read(name);
    if (there && (*there == entry || better(*there, entry))) return BroughtIn::kKept;
    const base::FileResult written =
        base::try_write_file(files_, opened_.file, name, encode_entry(entry, device_), 0600);
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
    if (name.empty()) base::fail(ErrorCode::kInvalidFile, "'{:.200}' is no device", device);
    std::string problem;
    const int opened = open_device_folder(files, folder, name, &problem);
    if (opened < 0) base::fail(ErrorCode::kFile, "{}", problem);
    *path = folder + "/" + name;
    return opened;
  }

  // The entry of that name, where there is a whole one of this device.
  std::optional<Entry> read(const std::string& name) {
    std::vector<std::byte> file;
    std::string device, why;
    const base::FileResult read = base::try_read_private_file(
        files_, opened_.file, base::FolderUse::kOwn, name, kMaxEntryBytes, &file);
    if (!read.ok()) return std::nullopt;
    const auto entry = decode_entry(file, &device, &why);
    return entry && device == device_ ? entry : std::nullopt;
  }

  base::FileSystem& files_;
  std::string device_;
  std::string path_;
  Opened opened_;
  Opened locked_;
};

}  // namespace

std::vector<BroughtIn> bring_in(base::FileSystem& files, const std::string& folder,
                                const Pack& pack) {
  std::vector<BroughtIn> outcomes;
  std::optional<DeviceFolder> open;
  const std::string* device = nullptr;  // a pack is sorted by device
  for (const PackedEntry& packed : pack) {
    if (device == nullptr || *device != packed.device) {
      open.reset();
      open.emplace(files, folder, packed.device);
      device = &packed.device;
    }
    outcomes.push_back(open->bring_in(packed.entry));
  }
  return outcomes;
}

void remove_file(base::FileSystem& files, const std::string& path) {
  std::string problem;
  const Opened folder{files,
                      base::open_private_folder(files, folder_of(path), base::FolderUse::kOwn,
                                                "it is not changed", &problem)};
  if (folder.file < 0) base::fail(ErrorCode::kFile, "{}", problem);
  const int code = files.unlink(folder.file, path.substr(path.rfind('/') + 1));
  if (code < 0) {
    base::fail(ErrorCode::kFile, "cannot remove '{}': {}", path, base::describe_errno(code));
  }
}

}  // namespace annulus::autotune
