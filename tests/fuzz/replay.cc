// Runs a fuzz target on inputs, so that what a campaign has found stays tested by a build without
// libFuzzer:
//
//   replay_pattern PATH...               runs the inputs of corpora, folders and single files
//   replay_pattern --add CORPUS PATH...  appends the inputs that the corpus does not have yet
//
// A corpus is a text file whose name ends with .corpus, such as tests/fuzz/pattern.corpus. Each of
// its lines is an input. Printable ASCII stands for itself, \n for a newline, and \xHH with two of
// 0 to f for any other byte, for a backslash, for a space at the end of an input and for a # at its
// beginning. A line that begins with # is a comment, and an empty line is the empty input. The
// command `printf %b` of bash turns a line into its input. Any other file is one input, byte for
// byte.
//
// If an input ends the process, the end of the output names the input. A run without an input fails
// with 1. Wrong usage, a file that cannot be read or written and a damaged line of a corpus fail
// with 2.

#include <fmt/core.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <unistd.h>

#include "fuzz/fuzz.h"

namespace {

namespace fs = std::filesystem;

struct Input {
  std::string bytes;
  // A text that is printed if this input ends the process.
  std::string name;
};

std::string_view name_of_current;

// Calls only functions that are safe in a signal handler.
void print_name(int signal) {
  (void)!write(STDERR_FILENO, name_of_current.data(), name_of_current.size());
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

std::string line_of(std::string_view bytes) {
  std::string line;
  for (const char c : bytes) {
    if (c == '\n') {
      line += "\\n";
    } else if (c < ' ' || c > '~' || c == '\\' || (c == '#' && line.empty())) {
      line += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    } else {
      line += c;
    }
  }
  if (line.ends_with(' ')) line.replace(line.size() - 1, 1, "\\x20");
  return line;
}

// Throws std::runtime_error if the line is damaged.
std::string bytes_of(std::string_view line) {
  // 16 or more if there is no digit at i.
  const auto digit = [&](std::size_t i) {
    return i < line.size() ? std::string_view("0123456789abcdef").find(line[i]) : 16;
  };
  std::string bytes;
  for (std::size_t i = 0; i < line.size(); ++i) {
    const std::string_view escape = line.substr(i, 2);
    if (escape == "\\n") {
      bytes += '\n';
      i += 1;
    } else if (escape == "\\x" && digit(i + 2) < 16 && digit(i + 3) < 16) {
      bytes += static_cast<char>(digit(i + 2) * 16 + digit(i + 3));
      i += 3;
    } else if (line[i] >= ' ' && line[i] <= '~' && line[i] != '\\') {
      bytes += line[i];
    } else {
      throw std::runtime_error(fmt::format(
          "byte {} is neither printable ASCII nor the begin of \\n or of \\x and two of 0 to f",
          i + 1));
    }
  }
  return bytes;
}

std::vector<Input> inputs_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string text((std::istreambuf_iterator<char>(file)), {});
  if (!file) throw std::runtime_error(path + " cannot be read");
  if (!path.ends_with(".corpus")) return {{text, fmt::format("\nthe input was {}\n", path)}};
  std::vector<Input> inputs;
  std::string_view rest = text;
  for (int number = 1; !rest.empty(); ++number) {
    const std::string place = fmt::format("{}:{}", path, number);
    const std::size_t end = rest.find('\n');
    if (end == rest.npos)
      throw std::runtime_error(place + ": the line does not end with a newline");
    const std::string_view line = rest.substr(0, end);
    rest.remove_prefix(end + 1);
    if (line.starts_with('#')) continue;
    try {
      inputs.push_back(
          {bytes_of(line), fmt::format("\nthe input was {}; this writes it to a file:\n"
                                       "printf %b \"$(sed -n {}p '{}')\" >input\n",
                                       place, number, path)});
    } catch (const std::runtime_error& error) {
      throw std::runtime_error(place + ": " + error.what());
    }
  }
  return inputs;
}

// The inputs of files, and of all files of folders, in the order of the names of the files.
std::vector<Input> inputs_of(char** begin, char** end) {
  std::vector<std::string> paths;
  for (char** path = begin; path != end; ++path) {
    if (!fs::is_directory(*path)) {
      paths.emplace_back(*path);
      continue;
    }
    for (const auto& entry : fs::recursive_directory_iterator(*path)) {
      if (entry.is_regular_file()) paths.push_back(entry.path().string());
    }
  }
  std::sort(paths.begin(), paths.end());
  std::vector<Input> inputs;
  for (const std::string& path : paths) {
    std::ranges::move(inputs_of(path), std::back_inserter(inputs));
  }
  return inputs;
}

// Appends the inputs that the corpus does not have. A corpus that does not exist is created.
void add(const std::string& corpus, const std::vector<Input>& inputs) {
  std::set<std::string> known;
  std::string text;
  if (fs::exists(corpus)) {
    for (const Input& input : inputs_of(corpus)) known.insert(input.bytes);
  } else {
    text = "# Inputs of a fuzz target, one a line. tests/fuzz/replay.cc describes the format.\n";
  }
  std::size_t added = 0;
  for (const Input& input : inputs) {
    if (!known.insert(input.bytes).second) continue;
    text += line_of(input.bytes) + '\n';
    ++added;
  }
  std::ofstream file(corpus, std::ios::binary | std::ios::app);
  if (!(file << text << std::flush)) throw std::runtime_error(corpus + " cannot be written");
  std::printf("%zu of %zu inputs were added\n", added, inputs.size());
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<Input> inputs;
  try {
    if (argc > 1 && std::strcmp(argv[1], "--add") == 0) {
      if (argc < 4 || !std::string_view(argv[2]).ends_with(".corpus")) {
        throw std::runtime_error("--add needs a file whose name ends with .corpus, and inputs");
      }
      add(argv[2], inputs_of(argv + 3, argv + argc));
      return 0;
    }
    inputs = inputs_of(argv + 1, argv + argc);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s: %s\n", argv[0], error.what());
    return 2;
  }
  for (const int signal : {SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL}) {
    std::signal(signal, print_name);
  }
  if (LLVMFuzzerInitialize != nullptr) LLVMFuzzerInitialize(&argc, &argv);
  for (const Input& input : inputs) {
    name_of_current = input.name;
    // The memory ends with the input, so that a sanitizer detects a read beyond it.
    const std::vector<std::uint8_t> bytes(input.bytes.begin(), input.bytes.end());
    LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
  }
  name_of_current = {};
  std::printf("%zu inputs\n", inputs.size());
  return inputs.empty() ? 1 : 0;
}
