#include "abi/library_search.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <string.h>

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "abi/own_folders.h"
#include "base/files.h"
#include "base/join.h"

namespace annulus::abi {
namespace {

namespace fs = std::filesystem;

// The folders in `parent` whose names begin with `prefix`, the newest version first: "cuda-13.0"
// before "cuda-12.8", and "python3.11" before "python3.9". std::filesystem::directory_iterator is
// not used, because it allocates in functions that may not throw, and so ends the process if memory
// is refused.
std::vector<std::string> folders(const std::string& parent, const std::string& prefix) {
  base::FileSystem files;
  std::vector<std::string> names;
  const int folder = files.open(base::kHere, parent, O_RDONLY | O_DIRECTORY, 0);
  if (folder < 0) return {};
  struct Closer {
    base::FileSystem& files;
    int folder;
    ~Closer() { files.close(folder); }
  } closer{files, folder};
  files.list(folder, &names);  // names that were listed before an error are used
  std::erase_if(names, [&](const std::string& name) { return !name.starts_with(prefix); });
  std::ranges::sort(names, [](const std::string& a, const std::string& b) {
    return strverscmp(a.c_str(), b.c_str()) > 0;
  });
  for (std::string& name : names) name = parent + "/" + name;
  return names;
}

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::size_t begin = 0;
  while (begin <= text.size()) {
    const std::size_t end = std::min(text.find(separator, begin), text.size());
    if (end > begin) parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

// Tries all file names in one folder. The folder is recorded as one attempt.
SharedLibrary try_folder(const LibraryNames& names, const std::string& folder,
                         LibraryReport* report, std::string* broken) {
  std::string outcome;
  for (const std::string& file : names.files) {
    const fs::path path = fs::path(folder) / file;
    std::error_code error;
    if (!fs::exists(path, error)) continue;
    std::string problem;
    if (SharedLibrary library{path.string(), &problem}) {
      report->tried.push_back({folder, "opened " + path.string()});
      return library;
    }
    if (!outcome.empty()) outcome += "; ";
    outcome += problem;
    if (broken->empty()) *broken = problem;
  }
  if (outcome.empty()) outcome = fmt::format("has no {}", base::join(names.files, ", "));
  report->tried.push_back({folder, outcome});
  return {};
}

SharedLibrary try_loader(const LibraryNames& names, LibraryReport* report, std::string* broken) {
  const std::string where = "the loader's own search";
  std::string first_problem;
  for (const std::string& file : names.files) {
    std::string problem;
    if (SharedLibrary library{file, &problem}) {
      report->tried.push_back({where, "opened " + library.path()});
      return library;
    }
    if (first_problem.empty()) first_problem = problem;
    // The loader's message names the missing file: this one, or another file that the library
    // needs.
    const bool absent =
        problem == file + ": cannot open shared object file: No such file or directory";
    if (!absent && broken->empty()) *broken = problem;
  }
  report->tried.push_back({where, first_problem});
  return {};
}

}  // namespace

LibrarySearch default_search(const base::Environment& environment) {
  LibrarySearch search;
  search.beside = own_folders();
  search.first = split(environment.library_path, ':');
  search.toolkits = {"/usr/local/cuda"};
  for (std::string& folder : folders("/usr/local", "cuda-")) search.toolkits.push_back(folder);
  std::vector<std::string> prefixes = {"/usr/local/lib", "/usr/lib", "/opt/conda/lib"};
  if (!environment.home.empty())
    prefixes.insert(prefixes.begin(), environment.home + "/.local/lib");
  // An environment that the user has chosen comes before installations for all users.
  if (!environment.virtual_env.empty())
    prefixes.insert(prefixes.begin(), environment.virtual_env + "/lib");
  for (const std::string& prefix : prefixes) {
    for (const std::string& python : folders(prefix, "python3")) {
      for (const char* packages : {"/site-packages", "/dist-packages"}) {
        std::error_code error;
        if (fs::exists(python + packages + "/nvidia", error)) {
          search.site_packages.push_back(python + packages);
        }
      }
    }
  }
  return search;
}

// Tries the places in their order and takes the first file that can be opened. A file that cannot
// be opened does not end the search, because a later place may have a good one. It is reported if
// no place does. The loader comes before the toolkits, so that a library is preferred which the
// process has already loaded or which LD_LIBRARY_PATH names.
SharedLibrary find_library(const LibraryNames& names, const LibrarySearch& search,
                           LibraryReport* report) {
  report->name = names.name;
  std::string broken;  // the loader's message for the first file that exists but cannot be opened
  // A part of Annulus is searched for next to Annulus first, even before the folders that the user
  // named. The file there has the same version. If a file of another version were opened first,
  // that would be an error, and the search would not continue (abi/libraries.h).
  if (names.ours) {
    for (const std::string& folder : search.beside) {
      if (SharedLibrary library = try_folder(names, folder, report, &broken)) return library;
    }
  }
  for (const std::string& folder : search.first) {
    if (SharedLibrary library = try_folder(names, folder, report, &broken)) return library;
  }
  if (search.loader) {
    if (SharedLibrary library = try_loader(names, report, &broken)) return library;
  }
  // Folders below toolkits and wheels are guesses, and most do not exist. Only existing ones are
  // recorded, so that the report stays readable. A folder that the caller named is always recorded.
  for (const std::string& root : search.toolkits) {
    for (const std::string& below : names.toolkit_folders) {
      const std::string folder = root + "/" + below;
      std::error_code error;
      if (!fs::exists(folder, error)) continue;
      if (SharedLibrary library = try_folder(names, folder, report, &broken)) return library;
    }
  }
  for (const std::string& root : search.site_packages) {
    for (const std::string& below : names.wheel_folders) {
      const std::string folder = root + "/" + below;
      std::error_code error;
      if (!fs::exists(folder, error)) continue;
      if (SharedLibrary library = try_folder(names, folder, report, &broken)) return library;
    }
  }
  if (!broken.empty()) {
    report->problem = fmt::format(
        "{} exists but cannot be opened ({}); repair or remove that file, or name a folder with "
        "a "
        "good one in ANNULUS_LIBRARY_PATH",
        names.name, broken);
    return {};
  }
  report->problem =
      fmt::format("{} ({}) was not found; {}", names.name, names.files.front(), names.install);
  return {};
}

}  // namespace annulus::abi
