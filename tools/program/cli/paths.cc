#include "program/cli/paths.h"

#include <filesystem>

#include "base/fail.h"
#include "base/files.h"

namespace annulus::program {

void check_is_new(std::string_view option, const std::string& output,
                  const std::vector<std::string>& read) {
  if (output.empty()) return;
  for (const std::string& path : read) {
    const std::string file = path.starts_with('@') ? path.substr(1) : path;
    std::error_code error;
    // equivalent() compares device and inode, since two names may be one file.
    if (file.empty()) continue;
    if (output != file && !std::filesystem::equivalent(output, file, error)) continue;
    base::fail(ErrorCode::kInvalidArgument,
               "{} is '{}', which is read as '{}' and would be lost; name another file", option,
               output, file);
  }
}

std::string text_or_file(const std::string& text) {
  if (!text.starts_with('@')) return text;
  constexpr std::size_t kMaxBytes = std::size_t{64} << 20;
  base::FileSystem files;
  const std::vector<std::byte> bytes = base::read_file(files, text.substr(1), kMaxBytes);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::vector<std::string> files_named_in(const std::string& text) {
  std::vector<std::string> files;
  if (text.starts_with('@')) files.push_back(text);
  const std::string whole = text_or_file(text);
  for (std::size_t begin = whole.find('"'); begin != whole.npos;) {
    const std::size_t end = whole.find('"', begin + 1);
    if (end == whole.npos) break;
    files.push_back(whole.substr(begin + 1, end - begin - 1));
    begin = whole.find('"', end + 1);
  }
  return files;
}

void check_is_svg(std::string_view option, const std::string& path) {
  for (const char* other : {".png", ".jpg", ".jpeg", ".pdf", ".gif", ".webp"}) {
    if (!path.ends_with(other)) continue;
    base::fail(ErrorCode::kInvalidArgument,
               "{} is '{}', but the output is an SVG; name it .svg, and convert it", option, path);
  }
}

std::string absolute_paths(const std::string& paths) {
  std::string all;
  for (std::size_t begin = 0; begin <= paths.size();) {
    const std::size_t end = std::min(paths.find(':', begin), paths.size());
    const std::string path = paths.substr(begin, end - begin);
    if (begin > 0) all += ':';
    if (!path.empty()) all += std::filesystem::absolute(path).string();
    begin = end + 1;
  }
  return all;
}

}  // namespace annulus::program
