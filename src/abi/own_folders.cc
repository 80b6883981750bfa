#include "abi/own_folders.h"

#include <dlfcn.h>
#include <link.h>

#include <algorithm>
#include <filesystem>
#include <system_error>

namespace annulus::abi {
namespace {

namespace fs = std::filesystem;

// The file that contains this code. Empty if the loader does not report it.
fs::path own_file() {
  Dl_info info{};
  link_map* map = nullptr;
  void* const here = reinterpret_cast<void*>(&own_folders);
  if (dladdr1(here, &info, reinterpret_cast<void**>(&map), RTLD_DL_LINKMAP) == 0) return {};
  // The loader has no name for the program itself, and dli_fname is the name that the parent
  // process chose.
  if (map == nullptr || map->l_name == nullptr || *map->l_name == '\0') {
    std::error_code error;
    return fs::read_symlink("/proc/self/exe", error);
  }
  return map->l_name;
}

}  // namespace

std::vector<std::string> folders_around(const std::string& file) {
  std::error_code error;
  std::vector<std::string> folders;
  const auto add = [&](const fs::path& named, bool anyones) {
    const fs::path folder = fs::weakly_canonical(named, error);
    const fs::file_status status = fs::status(folder, error);
    if (!fs::is_directory(status)) return;
    if (!anyones && (status.permissions() & fs::perms::others_write) != fs::perms::none) return;
    if (std::find(folders.begin(), folders.end(), folder) == folders.end()) {
      folders.push_back(folder);
    }
  };
  // A link to the library may be in another folder than the library and the files that were
  // installed with it, so both folders are used.
  for (const fs::path& path : {fs::path(file), fs::weakly_canonical(file, error)}) {
    add(path.parent_path(), true);
    for (const char* below : {"../" ANNULUS_LIBDIR, "../lib", ".."}) {
      add(path.parent_path() / below, false);
    }
  }
  return folders;
}

std::vector<std::string> own_folders() {
  const fs::path file = own_file();
  if (file.empty()) return {};
  return folders_around(file);
}

std::vector<std::string> shared_folders(const std::string& name) {
  std::vector<std::string> folders;
  for (const std::string& own : own_folders()) {
    for (const char* share : {"share/annulus", "../share/annulus"}) {
      std::error_code error;
      const fs::path folder = fs::weakly_canonical(fs::path(own) / share / name, error);
      if (!fs::is_directory(folder, error)) continue;
      if (std::find(folders.begin(), folders.end(), folder) == folders.end()) {
        folders.push_back(folder);
      }
    }
  }
  return folders;
}

}  // namespace annulus::abi
