#include "simulator/broken/broken.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>

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

BrokenKernel read_kernel(const std::filesystem::path& path) {
  BrokenKernel kernel;
  kernel.name = path.filename().string();
  std::ifstream file(path);
  bool says_what = false;
  int number = 0;
  for (std::string line; std::getline(file, line);) {
    ++number;
    kernel.source += line + "\n";
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
  return kernel;
}

}  // namespace

std::vector<BrokenKernel> read_broken_kernels(const std::string& folder) {
  std::vector<BrokenKernel> kernels;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const std::string extension = entry.path().extension().string();
    if (extension == ".cu" || extension == ".ptx") kernels.push_back(read_kernel(entry.path()));
  }
  std::sort(kernels.begin(), kernels.end(),
            [](const BrokenKernel& a, const BrokenKernel& b) { return a.name < b.name; });
  return kernels;
}

}  // namespace annulus::test
