#include "jit/templates.h"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <vector>

#include "base/fail.h"
#include "base/files.h"

namespace annulus::jit {
namespace {

constexpr std::int64_t kMaxFileBytes = 1 << 20;
constexpr std::size_t kMaxFiles = 1000;

bool is_template(const std::string& name) {
  return name.ends_with(".cuh") || name.ends_with(".cu") || name.ends_with(".h");
}

// Removes comments and indentation in the same way as tools/cmake/embed_files.cmake, so that the
// templates of the source tree have the same digest as the embedded ones. Every line keeps its
// number. A text with a block comment or a raw string is not changed.
std::string compact(std::string text) {
  if (text.find("/*") != std::string::npos || text.find("R\"") != std::string::npos) return text;
  std::string made;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    std::string_view line = std::string_view(text).substr(begin, end - begin);
    if (begin > 0) line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
    bool quoted = false;
    for (std::size_t i = 0; i < line.size(); ++i) {
      if (line[i] == '"' && (i == 0 || line[i - 1] != '\\')) quoted = !quoted;
      if (quoted || line.substr(i, 2) != "//") continue;
      line = line.substr(0, i);
      line = line.substr(0, line.find_last_not_of(" \t") + 1);
    }
    made += line;
    if (end < text.size()) made += '\n';
    begin = end + 1;
  }
  return made;
}

// Adds the templates of a folder and of its subfolders, with names that begin with `prefix`. Links
// to folders are not followed. Returns 0 or -errno. std::filesystem::recursive_directory_iterator
// is not used, because it allocates in functions that may not throw, and so ends the process if
// memory is refused.
int collect(base::FileSystem& files, const std::string& path, const std::string& prefix,
            std::map<std::string, std::string>* templates) {
  const int flags = O_RDONLY | O_DIRECTORY | (prefix.empty() ? 0 : O_NOFOLLOW);
  const int folder = files.open(base::kHere, path, flags, 0);
  if (folder < 0) return folder;
  struct Closer {
    base::FileSystem& files;
    int folder;
    ~Closer() { files.close(folder); }
  } closer{files, folder};
  std::vector<std::string> names;
  if (const int code = files.list(folder, &names); code < 0) return code;
  for (const std::string& name : names) {
    const std::string inside = path + "/" + name;
    const int code = collect(files, inside, prefix + name + "/", templates);
    if (code == 0) continue;
    if (code != -ENOTDIR && code != -ELOOP) return code;
    if (!is_template(name)) continue;
    if (templates->size() == kMaxFiles) {
      base::fail(ErrorCode::kInvalidFile, "'{}' holds more than {} templates", path, kMaxFiles);
    }
    const auto bytes = base::read_file(files, inside, kMaxFileBytes);
    templates->emplace(
        prefix + name,
        compact(std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size())));
  }
  return 0;
}

void require_name(const std::string& name) {
  const bool letters = std::ranges::all_of(name, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-' || c == '.' || c == '/';
  });
  if (!letters || name.empty() || name.front() == '/' || name.find("..") != std::string::npos) {
    base::fail(ErrorCode::kInvalidArgument,
               "'{}' cannot be the name of a template; use letters, digits, '_', '-', '.', '/'",
               name);
  }
}

}  // namespace

TemplateSet::TemplateSet(std::map<std::string, std::string> files) : files_(std::move(files)) {
  std::string all;
  for (const auto& [name, text] : files_) {
    require_name(name);
    // Lengths are part of the digest, so that moving text from one file to the next changes it.
    all += fmt::format("{} {}\n{}", name, text.size(), text);
  }
  digest_ = base::digest(all);
}

std::shared_ptr<const TemplateSet> TemplateSet::embedded() {
  std::map<std::string, std::string> files;
  for (const EmbeddedFile& file : embedded_templates()) files.emplace(file.name, file.text);
  return std::make_shared<const TemplateSet>(std::move(files));
}

std::shared_ptr<const TemplateSet> TemplateSet::from_folder(const std::string& folder) {
  std::map<std::string, std::string> files;
  base::FileSystem system;
  if (const int code = collect(system, folder, "", &files); code < 0) {
    base::fail(ErrorCode::kFile, "cannot read templates from '{}': {}", folder,
               base::describe_errno(code));
  }
  if (files.empty()) {
    base::fail(ErrorCode::kInvalidFile, "'{}' holds no templates (.cuh, .cu or .h files)", folder);
  }
  return std::make_shared<const TemplateSet>(std::move(files));
}

std::shared_ptr<const TemplateSet> TemplateSet::with(const std::string& folder,
                                                     std::span<const EmbeddedFile> files) const {
  std::map<std::string, std::string> all = files_;
  for (const EmbeddedFile& file : files) {
    all.insert_or_assign(folder + "/" + file.name, std::string(file.text));
  }
  return std::make_shared<const TemplateSet>(std::move(all));
}

std::string with_virtual_includes(std::string_view text, const TemplateSet& set) {
  constexpr std::string_view kInclude = "#include \"";
  std::string result;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n') + 1);
    const std::string_view whole = line.empty() ? text : line;
    text.remove_prefix(whole.size());
    const std::size_t close = whole.find('"', kInclude.size());
    if (whole.starts_with(kInclude) && close != std::string_view::npos &&
        set.contains(std::string(whole.substr(kInclude.size(), close - kInclude.size())))) {
      result += kInclude;
      result += kVirtualRoot;
      result += whole.substr(kInclude.size());
    } else {
      result += whole;
    }
  }
  return result;
}

}  // namespace annulus::jit
