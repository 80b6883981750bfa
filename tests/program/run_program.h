#ifndef ANNULUS_TESTS_PROGRAM_RUN_PROGRAM_H_
#define ANNULUS_TESTS_PROGRAM_RUN_PROGRAM_H_

// Runs the program as a user does, and captures its output.

#include <doctest/doctest.h>
#include <sys/wait.h>

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>

#include "base/json.h"
#include "support/device.h"
#include "support/faulty_files.h"

namespace annulus::test {

struct Outcome {
  int code = -1;
  std::string out;
  std::string err;
};

inline std::string read(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

// Runs a command in a shell.
inline Outcome run_command(const std::string& words) {
  const ScratchFolder folder;
  const std::string command =
      words + " >" + (folder / "out") + " 2>" + (folder / "err") + " </dev/null";
  const int status = std::system(command.c_str());
  Outcome outcome;
  outcome.code = WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + status;
  outcome.out = read(folder / "out");
  outcome.err = read(folder / "err");
  return outcome;
}

// Arguments are written as in a shell.
inline Outcome annulus_with(const std::string& arguments) {
  return run_command(std::string(ANNULUS_PROGRAM) + " " + arguments);
}

inline base::Json json_of(const std::string& arguments) {
  const Outcome outcome = annulus_with(arguments);
  CHECK_MESSAGE(outcome.code == 0, outcome.err);
  return base::parse_json(outcome.out, "the program's output");
}

// Checks that an error is one line on stderr that contains `part`. Indented lines below it may show
// the place. stdout must be empty, or with --json have an object with the same text.
inline void refused(const std::string& arguments, int code, const std::string& part) {
  CAPTURE(arguments);
  const Outcome outcome = annulus_with(arguments);
  CHECK(outcome.code == code);
  std::istringstream lines(outcome.err);
  std::string first;
  // An action that takes longer than a second prints this line first.
  while (std::getline(lines, first) && first.starts_with("planning and compiling: ")) continue;
  CHECK(first.starts_with("annulus"));
  CHECK_MESSAGE(first.find(part) != std::string::npos, outcome.err);
  for (std::string more; std::getline(lines, more);) CHECK(more.starts_with("  "));
  CHECK(outcome.err.ends_with('\n'));
  if (arguments.find("--json") == std::string::npos) {
    CHECK(outcome.out.empty());
    return;
  }
  const base::Json error = base::parse_json(outcome.out, "the program's output")["error"];
  CHECK_FALSE(error["code"].get<std::string>().empty());
  CHECK(first.ends_with(": " + error["text"].get<std::string>()));
}

inline std::string on_device() { return " --device " + device_name(); }

}  // namespace annulus::test

#endif  // ANNULUS_TESTS_PROGRAM_RUN_PROGRAM_H_
