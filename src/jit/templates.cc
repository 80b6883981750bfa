#include "jit/templates.h"

#include <algorithm>
#include <filesystem>
#include <vector>

#include "base/fail.h"
#include "base/files.h"

namespace annulus::jit {
namespace {

constexpr std::int64_t kMaxFileBytes = 1 << 20;
constexpr std::size_t kMaxFiles = 1000;

bool is_template(const std::filesystem::path& path) {
  return path.extension() == ".cuh" || path.extension() == ".cu" || path.extension() == ".h";
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
  namespace fs = std::filesystem;
  std::map<std::string, std::string> files;
  base::FileSystem system;
  std::error_code error;
  for (fs::recursive_directory_iterator i(folder, error), end; !error && i != end;
       i.increment(error)) {
    if (!i->is_regular_file(error) || error || !is_template(i->path())) continue;
    if (files.size() == kMaxFiles) {
      base::fail(ErrorCode::kInvalidFile, "'{}' holds more than {} templates", folder, kMaxFiles);
    }
    const auto bytes = base::read_file(system, i->path().string(), kMaxFileBytes);
    files.emplace(i->path().lexically_relative(folder).generic_string(),
                  std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
  }
  if (error) {
    base::fail(ErrorCode::kFile, "cannot read templates from '{}': {}", folder, error.message());
  }
  if (files.empty()) {
    base::fail(ErrorCode::kInvalidFile, "'{}' holds no templates (.cuh, .cu or .h files)", folder);
  }
  return std::make_shared<const TemplateSet>(std::move(files));
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
