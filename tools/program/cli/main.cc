// The program annulus. It has one verb each for running, tuning, explaining, checking the
// installation and so on.
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

// An error as it is printed for the user.
struct Failure {
  std::string verb = {};  // "tuned list"; empty if there is no verb
  std::string text;
  std::string excerpt = {};  // the lines of TextError::excerpt() that show the place
  ErrorCode code = ErrorCode::kInvalidArgument;
  Exit exit = Exit::kUsage;
  bool json = false;  // also print the error as a JSON object to standard output
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

// If the shell closed a standard stream, the next file that is opened would get the stream's
// number, and results would be written into that file. So /dev/null is opened here in the mode that
// makes such reads and writes fail.
void keep_standard_streams() {
  for (int stream = 0; stream < 3; ++stream) {
    if (fcntl(stream, F_GETFD) < 0 && errno == EBADF) {
      (void)open("/dev/null", stream == 0 ? O_WRONLY : O_RDONLY);
    }
  }
}

// A result that cannot be written to standard output turns success into an error.
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
  // A process that was started by another annulus process (--seat) leaves the JSON object to that
  // process.
  Failure failure = {.verb = std::string(added.verb->name),
                     .text = {},
                     .json = was_given(*added.app, "--json") && !was_given(*added.app, "--seat")};
  try {
    return delivered(static_cast<int>(added.call()));
  } catch (const Error& error) {
    failure.text = error.what();
    failure.code = error.code();
    // The `pattern` verbs open no device, so the host has too little memory for the requested size.
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

// Whether the words contain --json. It is used if the parser failed before it reached the option.
bool asks_for_json(int count, char** words) {
  for (int i = 1; i < count && std::string_view(words[i]) != "--"; ++i) {
    if (std::string_view(words[i]) == "--json") return true;
  }
  return false;
}

// The least number of characters to insert, remove or replace to turn one word into the other
// (Levenshtein distance).
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

// The error text for the first unknown option of `words` that resembles an option of `app`. The
// text names the nearest option. It is empty if no option is near.
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

// Handles an exception of the parser: a request for help, or words that the parser does not accept.
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
  // A write beyond the user's file size limit then fails like any other write.
  signal(SIGXFSZ, SIG_IGN);
  program::CommandLine line;
  try {
    line.parser.parse(count, words);
  } catch (const CLI::ParseError& error) {
    return refuse(line.parser, error, asks_for_json(count, words));
  }
  for (const program::CommandLine::Added& added : line.verbs) {
    // If the verb has a subcommand on the command line, the subcommand is the one to run.
    if (added.app->parsed() && added.app->get_subcommands().empty()) return guarded(added);
  }
  return fail({.text = "no verb; see annulus --help", .json = asks_for_json(count, words)});
}
