#include "broken/broken.h"

#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <utility>

namespace annulus::test {
namespace {

std::string trimmed(const std::string& text) {
  const std::size_t begin = text.find_first_not_of(' ');
  return begin == std::string::npos ? std::string()
                                    : text.substr(begin, text.find_last_not_of(' ') - begin + 1);
}

void read_launch(const std::string& words, BrokenKernel& kernel) {
  std::istringstream stream(words);
  for (std::string word; stream >> word;) {
    const std::size_t equal = word.find('=');
    const auto found = kernel.launch.find(word.substr(0, equal));
    if (equal == std::string::npos || found == kernel.launch.end()) {
      throw std::runtime_error(kernel.name + ": '" + word + "' is no launch option");
    }
    found->second = static_cast<unsigned>(std::stoul(word.substr(equal + 1)));
  }
}

std::set<std::string> read_kinds(const std::string& text) {
  std::set<std::string> kinds;
  std::istringstream stream(text);
  for (std::string kind; std::getline(stream, kind, '|');) {
    if (trimmed(kind) != "nothing") kinds.insert(trimmed(kind));
  }
  return kinds;
}

// Reads the head and the marks of the kernel's source.
void read_marks(BrokenKernel& kernel) {
  std::istringstream source(kernel.source);
  bool says_what = false;
  int number = 0;
  for (std::string line; std::getline(source, line);) {
    ++number;
    if (line.starts_with("// EXPECT ")) {
      says_what = true;
      kernel.expected = kernel.proven = read_kinds(line.substr(10));
    } else if (line == "// FAST nothing") {
      kernel.fast = true;
    } else if (line.starts_with("// PROVEN ")) {
      kernel.proven = read_kinds(line.substr(10));
    } else if (line.starts_with("// LAUNCH ")) {
      read_launch(line.substr(10), kernel);
    } else if (line.starts_with("// ARCH ")) {
      kernel.architecture = trimmed(line.substr(8));
    } else if (line.starts_with("// WITH products=")) {
      kernel.products = static_cast<unsigned>(std::stoul(line.substr(17)));
    } else if (line.starts_with("// ANYLINE")) {
      kernel.any_line = true;
    } else if (line.find("// FAULT") != std::string::npos) {
      kernel.lines.insert(number);
    }
  }
  if (!says_what) throw std::runtime_error(kernel.name + " has no EXPECT line");
  if (!kernel.expected.empty() && kernel.lines.empty() && !kernel.any_line) {
    throw std::runtime_error(kernel.name + " marks no line as FAULT");
  }
}

std::vector<BrokenKernel> read_kernels(const std::filesystem::path& path) {
  std::vector<BrokenKernel> kernels;
  std::string head;
  int number = 0, head_lines = 0;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line); ++number) {
    if (line.starts_with("// KERNEL ")) {
      BrokenKernel& kernel = kernels.emplace_back();
      kernel.name = trimmed(line.substr(10));
      kernel.file = path.filename().string();
      kernel.source = head + std::string(number - head_lines, '\n');
    }
    if (kernels.empty()) ++head_lines;
    (kernels.empty() ? head : kernels.back().source) += line + "\n";
  }
  if (kernels.empty()) throw std::runtime_error(path.string() + " has no KERNEL line");
  for (BrokenKernel& kernel : kernels) read_marks(kernel);
  return kernels;
}

}  // namespace

std::vector<BrokenKernel> read_broken_kernels(const std::string& folder) {
  std::map<std::string, BrokenKernel> kernels;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const std::string extension = entry.path().extension().string();
    if (extension != ".cu" && extension != ".ptx") continue;
    for (BrokenKernel& kernel : read_kernels(entry.path())) {
      const std::string name = kernel.name, file = kernel.file;
      if (!kernels.emplace(name, std::move(kernel)).second) {
        throw std::runtime_error(file + ": another kernel is called " + name + " too");
      }
    }
  }
  std::vector<BrokenKernel> sorted;
  for (auto& [name, kernel] : kernels) sorted.push_back(std::move(kernel));
  return sorted;
}

}  // namespace annulus::test
