// The program annulus: one verb each for running, tuning, explaining and checking the
// installation.
#include <fcntl.h>
#include <fmt/core.h>
#include <signal.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <new>
#include <numeric>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "program/cli/command_line.h"
#include "program/cli/output.h"
#include "program/cli/text_error.h"
#include "program/run/ring_processes.h"

namespace {

using namespace annulus;
using program::Exit;

// An error as the user meets it.
struct Failure {
  std::string verb = {};  // "tuned list"; empty: none
  std::string text;
  std::string excerpt = {};  // lines that show where, as of TextError
  ErrorCode code = ErrorCode::kInvalidArgument;
  Exit exit = Exit::kUsage;
  bool json = false;  // an object on standard output as well
};

int fail(const Failure& failure) {
  const std::string text = program::without_control(failure.text, program::Lines::kOne);
  if (failure.json) {
    program::print_json({{"error", {{"code", to_string(failure.code)}, {"text", text}}}});
  }
  std::fflush(stdout);
  std::fprintf(stderr, "annulus%s%s: %s\n%s", failure.verb.empty() ? "" : " ", failure.verb.c_str(),
               text.c_str(), failure.excerpt.c_str());
  return static_cast<int>(failure.exit);
}

// Where the shell closed a standard stream, the next file to be opened would get its number, and
// results would be written into that file. What is opened here instead refuses to be written.
void keep_standard_streams() {
  for (int stream = 0; stream < 3; ++stream) {
    if (fcntl(stream, F_GETFD) < 0 && errno == EBADF) {
      (void)open("/dev/null", stream == 0 ? O_WRONLY : O_RDONLY);
    }
  }
}

// A result that did not arrive is no success.
int delivered(int code) {
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return code;
  const std::string text = std::string("cannot write to standard output: ") + std::strerror(errno);
  std::fprintf(stderr, "annulus: %s\n", text.c_str());
  return code == 0 ? static_cast<int>(Exit::kInvalidFile) : code;
}

bool was_given(const CLI::App& app, const char* name) {
  const CLI::Option* option = app.get_option_no_throw(name);
  return option != nullptr && option->count() > 0;
}

int guarded(const program::CommandLine::Added& added) {
  // A process that another one started leaves the object to that one.
  Failure failure = {.verb = std::string(added.verb->name),
                     .text = {},
                     .json = was_given(*added.app, "--json") && !was_given(*added.app, "--seat")};
  try {
    return delivered(static_cast<int>(added.call()));
  } catch (const Error& error) {
    failure.text = error.what();
    failure.code = error.code();
    // Where no device is open, it is the host that has too little memory for what was asked.
    const bool too_large =
        error.code() == ErrorCode::kOutOfMemory && added.verb->name.starts_with("pattern");
    failure.exit = too_large ? Exit::kUsage : program::exit_code(error.code());
    const auto* of_text = dynamic_cast<const program::TextError*>(&error);
    if (of_text != nullptr) failure.excerpt = of_text->excerpt();
  } catch (const std::bad_alloc&) {
    failure.text = "out of host memory; use a smaller problem";
    failure.code = ErrorCode::kOutOfMemory;
  } catch (const std::exception& error) {
    failure.text = error.what();
    failure.code = ErrorCode::kInternal;
    failure.exit = Exit::kInternal;
  }
  return fail(failure);
}

// Whether the words ask for --json, where the parser did not come as far as to say so.
bool asks_for_json(int count, char** words) {
  for (int i = 1; i < count && std::string_view(words[i]) != "--"; ++i) {
    if (std::string_view(words[i]) == "--json") return true;
  }
  return false;
}

// The fewest characters to insert, remove or replace that make one word of the other (Levenshtein).
std::size_t edits_between(std::string_view from, std::string_view to) {
  std::vector<std::size_t> edits(to.size() + 1);
  std::iota(edits.begin(), edits.end(), std::size_t{0});
  for (std::size_t i = 0; i < from.size(); ++i) {
    std::size_t diagonal = std::exchange(edits[0], i + 1);
    for (std::size_t j = 0; j < to.size(); ++j) {
      const std::size_t replaced = diagonal + (from[i] == to[j] ? 0 : 1);
      diagonal = edits[j + 1];
      edits[j + 1] = std::min({replaced, diagonal + 1, edits[j] + 1});
    }
  }
  return edits.back();
}

// What is wrong with the first option of `words` that is none of the program's: the nearest one is
// named. Empty where there is no such word, or no option is near.
std::string text_of_unknown(const CLI::App& app, const std::vector<std::string>& words) {
  constexpr std::size_t kNear = 2;
  for (const std::string& word : words) {
    if (!word.starts_with("--")) continue;
    const std::string given = word.substr(0, word.find('='));
    std::string nearest;
    std::size_t fewest = kNear + 1;
    for (const CLI::Option* option : app.get_options()) {
      for (const std::string& name : option->get_lnames()) {
        const std::size_t edits = edits_between(given, "--" + name);
        if (edits < fewest) fewest = edits, nearest = name;
      }
    }
    if (!nearest.empty()) {
      return fmt::format("{} is not an option; did you mean --{}?", given, nearest);
    }
  }
  return {};
}

// What the parser threw: help that was asked for, or words that it does not take.
int refuse(const CLI::App& parser, const CLI::ParseError& error, bool json) {
  if (error.get_exit_code() == 0) return delivered(parser.exit(error));  // --help, --version
  const CLI::App* app = &parser;
  while (!app->get_subcommands().empty()) app = app->get_subcommands().front();
  const bool top = app == &parser;
  std::string text = error.what();
  if (const std::string unknown = text_of_unknown(*app, app->remaining()); !unknown.empty()) {
    text = unknown;
  }
  if (app->get_require_subcommand_min() > 0) {
    const std::vector<std::string> words = app->remaining();
    const char* kind = top ? "verb" : "subcommand";
    text = (words.empty() ? fmt::format("no {}", kind)
                          : fmt::format("'{}' is not a {}", words.front(), kind)) +
           "; use " + program::names_below(*app);
  }
  const std::string name = program::full_name(*app);
  return fail({.verb = top ? "" : name.substr(name.find(' ') + 1),
               .text = text + "; see " + name + " --help",
               .json = json});
}

}  // namespace

int main(int count, char** words) {
  keep_standard_streams();
  program::remember_command_line(count, words);
  signal(SIGXFSZ, SIG_IGN);  // a file beyond the user's limit is a write that fails, like any other
  program::CommandLine line;
  try {
    line.parser.parse(count, words);
  } catch (const CLI::ParseError& error) {
    return refuse(line.parser, error, asks_for_json(count, words));
  }
  for (const program::CommandLine::Added& added : line.verbs) {
    // A verb may have others below it, which are then the ones that are meant.
    if (added.app->parsed() && added.app->get_subcommands().empty()) return guarded(added);
  }
  return fail({.text = "no verb; see annulus --help", .json = asks_for_json(count, words)});
}
