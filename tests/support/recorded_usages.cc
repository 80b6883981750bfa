#include "support/recorded_usages.h"

#include <doctest/doctest.h>
#include <fmt/core.h>

#include <cstdio>
#include <fstream>
#include <regex>
#include <sstream>
#include <utility>
#include <vector>

#include "base/env.h"
#include "jit/kernel_cache.h"
#include "support/options.h"

namespace annulus::test {
namespace {

// Blanks out comments and keeps the lines, so that the compiler reports the same line numbers.
std::string without_comments(const std::string& text) {
  std::string out;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    bool quoted = false;
    for (std::size_t i = 0; i < line.size(); ++i) {
      if (line[i] == '"') quoted = !quoted;
      if (!quoted && line.compare(i, 2, "//") == 0) line.resize(i);
    }
    line.resize(line.find_last_not_of(' ') + 1);
    out += line + "\n";
  }
  return out;
}

// The template `file` and all files that it includes directly or indirectly.
std::map<std::string, std::string> included_from(const std::string& file) {
  static const std::regex kInclude("(^|\n)[ \t]*#[ \t]*include[ \t]+\"([^\"]+)\"");
  const std::shared_ptr<const jit::TemplateSet> all = jit::TemplateSet::embedded();
  std::map<std::string, std::string> found;
  std::vector<std::string> open = {file};
  while (!open.empty()) {
    const std::string name = open.back();
    open.pop_back();
    const auto at = all->files().find(name);
    if (at == all->files().end() || found.contains(name)) continue;
    const std::string text = found[name] = without_comments(at->second);
    for (std::sregex_iterator match(text.begin(), text.end(), kInclude), end; match != end;
         ++match) {
      open.push_back((*match)[2]);
    }
  }
  return found;
}

// "168 0 0 0 1024": registers, and bytes of spill stores, spill loads, local memory and static
// shared memory. Empty if the compiler printed anything else.
std::string to_line(const jit::ResourceUsage& usage) {
  if (!usage.known || !usage.notes.empty()) return "";
  return fmt::format("{} {} {} {} {}", usage.registers, usage.spill_store_bytes,
                     usage.spill_load_bytes, usage.local_bytes, usage.static_shared_bytes);
}

jit::ResourceUsage from_line(const std::string& line) {
  jit::ResourceUsage usage;
  usage.known =
      std::sscanf(line.c_str(), "%d %d %d %d %d", &usage.registers, &usage.spill_store_bytes,
                  &usage.spill_load_bytes, &usage.local_bytes, &usage.static_shared_bytes) == 5;
  return usage;
}

}  // namespace

RecordedUsages::RecordedUsages(std::string file, std::shared_ptr<const abi::NvrtcLibrary> nvrtc)
    : file_(std::move(file)),
      nvrtc_(std::move(nvrtc)),
      disk_({.folder = base::read_environment().cache_dir}) {
  identity_ =
      jit::Compiler(nvrtc_, jit::TemplateSet::embedded(), jit::ImageKind::kCubin).identity();
  std::ifstream stream(file_);
  std::string nvrtc_of_lines;
  for (std::string line; std::getline(stream, line);) {
    if (line.starts_with("NVRTC ")) {
      nvrtc_of_lines = line.substr(6);
    } else if (!line.empty() && line[0] != '#') {
      const std::size_t blank = line.find(' ');
      REQUIRE_MESSAGE(blank != line.npos, file_ << " has the line '" << line << "'");
      recorded_[nvrtc_of_lines][line.substr(0, blank)] = line.substr(blank + 1);
    }
  }
  knows_nvrtc_ = recorded_.contains(identity_);
}

const jit::Compiler& RecordedUsages::compiler_for(const std::string& file) {
  const std::lock_guard lock(mutex_);
  std::unique_ptr<const jit::Compiler>& compiler = compilers_[file];
  if (!compiler) {
    compiler = std::make_unique<const jit::Compiler>(
        nvrtc_, std::make_shared<const jit::TemplateSet>(included_from(file)),
        jit::ImageKind::kCubin);
  }
  return *compiler;
}

jit::ResourceUsage RecordedUsages::of(jit::KernelSpec spec) {
  const jit::Compiler& compiler = compiler_for(spec.file);
  const std::string name = fmt::format("{} {}", spec.family, spec.config);
  const jit::KernelRequest request = compiler.prepare(std::move(spec));
  const std::string digest = request.key.digest.hex();
  if (const auto known = recorded_.find(identity_); known != recorded_.end()) {
    if (const auto found = known->second.find(digest); found != known->second.end()) {
      const std::lock_guard lock(mutex_);
      used_[digest] = found->second;
      return from_line(found->second);
    }
  }
  const jit::ResourceUsage usage = jit::obtain_kernel(disk_, request.key, [&] {
                                     return compiler.compile(request);
                                   }).kernel.usage;
  const std::lock_guard lock(mutex_);
  if (const std::string line = to_line(usage); !line.empty()) used_[digest] = line;
  missing_.insert(name);
  return usage;
}

void RecordedUsages::finish() {
  if (options().record) {
    recorded_[identity_] = used_;
    std::ofstream stream(file_);
    stream << "# Registers, bytes of spill stores and loads, of local and of static shared memory"
              " of\n# compiled kernels, by digest; written by --record yes"
              " (tests/support/recorded_usages.h).\n";
    for (const auto& [nvrtc, lines] : recorded_) {
      stream << "NVRTC " << nvrtc << "\n";
      for (const auto& [digest, usage] : lines) stream << digest << " " << usage << "\n";
    }
    REQUIRE(stream.good());
    return;
  }
  if (!knows_nvrtc_ || missing_.empty()) return;
  FAIL_CHECK(missing_.size() << " kernels, " << *missing_.begin() << " among them, are not in "
                             << file_ << ": run this program once with --record yes");
}

}  // namespace annulus::test
