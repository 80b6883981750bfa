// The program annulus: one verb each for running, tuning, explaining and checking the
// installation.
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <functional>
#include <new>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "annulus/version.h"
#include "program/options.h"
#include "program/pattern.h"
#include "program/ring_processes.h"
#include "program/traced.h"

namespace {

using namespace annulus;
using program::Exit;
using program::traced;

int fail(const char* verb, const char* text, Exit exit) {
  std::fflush(stdout);
  std::fprintf(stderr, "annulus%s%s: %s\n", *verb ? " " : "", verb, text);
  return static_cast<int>(exit);
}

// One line, whatever the parser of the options put into its message.
std::string one_line(std::string text) {
  for (char& c : text) {
    if (c == '\n') c = ' ';
  }
  return text;
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

template <typename Verb>
int guarded(const char* name, Verb verb) {
  try {
    return delivered(static_cast<int>(verb()));
  } catch (const Error& error) {
    // Where no device is open, it is the host that has too little memory for what was asked.
    const bool too_large =
        error.code() == ErrorCode::kOutOfMemory && std::string_view(name).starts_with("pattern");
    return fail(name, one_line(error.what()).c_str(),
                too_large ? Exit::kUsage : program::exit_code(error.code()));
  } catch (const std::bad_alloc&) {
    return fail(name, "out of host memory; use a smaller problem", Exit::kUsage);
  } catch (const std::exception& error) {
    return fail(name, one_line(error.what()).c_str(), Exit::kInternal);
  }
}

// All verbs, with the arguments that the parser fills in. Stays where it was made: the parser
// points into it.
struct CommandLine {
  struct Verb {
    std::string name;  // "tuned list"
    CLI::App* app;
    std::function<Exit()> call;
  };

  CommandLine();
  CommandLine(const CommandLine&) = delete;
  CommandLine& operator=(const CommandLine&) = delete;

  // `call` is what the verb does where the command line names it.
  CLI::App& add(CLI::App& parent, const char* name, const char* help, std::function<Exit()> call) {
    CLI::App* app = parent.add_subcommand(name, help);
    const bool top = &parent == &parser;
    verbs.push_back({top ? name : parent.get_name() + " " + name, app, std::move(call)});
    return *app;
  }

  CLI::App parser{"Block-sparse attention kernels, written, compiled and run at run time"};
  std::vector<Verb> verbs;
  program::RunArguments run;
  program::ExplainArguments explain;
  program::TuneArguments tune;
  program::TunedArguments tuned;
  program::PackArguments packs;
  program::WarmArguments warm;
  program::CacheArguments cache;
  program::PatternVerbs pattern;
  program::DoctorArguments doctor;
};

CommandLine::CommandLine() {
  parser.name("annulus");
  parser.require_subcommand(1);
  parser.set_version_flag("--version", std::to_string(ANNULUS_VERSION_MAJOR) + "." +
                                           std::to_string(ANNULUS_VERSION_MINOR) + "." +
                                           std::to_string(ANNULUS_VERSION_PATCH));
  parser.footer(
      "Exit codes: 0 ok, 1 internal, 2 usage, or larger than this machine's memory, 3 partial, or "
      "nothing was compared, 4 device, 5 invalid file, 6 wrong result.");

  program::add_options(
      add(parser, "run", "one attention problem, checked by the oracle",
          [this] { return traced(run.device, [&] { return program::run(run); }); }),
      &run);
  program::add_options(
      add(parser, "explain", "which kernel a problem gets, and why; runs nothing",
          [this] { return traced(explain.device, [&] { return program::explain(explain); }); }),
      &explain);
  program::add_options(
      add(parser, "tune", "find the fastest configuration for problems, and keep it",
          [this] { return traced(tune.device, [&] { return program::tune(tune); }); }),
      &tune);
  program::add_options(
      add(parser, "warm", "compile the kernels of problems ahead, into a folder to ship",
          [this] { return program::warm(warm); }),
      &warm);
  CLI::App& of_tuned = *parser.add_subcommand("tuned", "what has been tuned, and packs of it");
  of_tuned.require_subcommand(1);
  program::add_list_options(add(of_tuned, "list", "one line for each entry",
                                [this] { return program::list_tuned(tuned); }),
                            &tuned);
  program::add_show_options(add(of_tuned, "show", "entries with all that is known",
                                [this] { return program::show_tuned(tuned); }),
                            &tuned);
  struct PackVerb {
    const char* name;
    const char* help;
    void (*add_options)(CLI::App&, program::PackArguments*);
    Exit (*call)(const program::PackArguments&);
  };
  static constexpr PackVerb kPackVerbs[] = {
      {"export", "write entries to a pack", program::add_export_options, program::export_tuned},
      {"import", "bring the entries of packs into the first folder", program::add_import_options,
       program::import_tuned},
      {"merge", "write all entries of some packs to one", program::add_merge_options,
       program::merge_tuned},
      {"diff", "in what two packs differ", program::add_diff_options, program::diff_tuned},
      {"verify", "whether entries serve this device, and hold where they are measured again",
       program::add_verify_options, program::verify_tuned},
      {"prune", "remove what no plan of this build or a newer one uses", program::add_prune_options,
       program::prune_tuned},
      {"remove", "remove one entry", program::add_remove_options, program::remove_tuned},
      {"why", "which entry a problem uses, and why not each other one", program::add_why_options,
       program::why_tuned}};
  for (const PackVerb& verb : kPackVerbs) {
    verb.add_options(
        add(of_tuned, verb.name, verb.help,
            [this, call = verb.call] { return traced(packs.device, [&] { return call(packs); }); }),
        &packs);
  }
  CLI::App& of_cache = *parser.add_subcommand("cache", "folders of compiled kernels");
  of_cache.require_subcommand(1);
  program::add_list_options(add(of_cache, "list", "what is there, by what it was compiled for",
                                [this] { return program::list_cache(cache); }),
                            &cache);
  program::add_prune_options(add(of_cache, "prune", "remove kernels that are old or serve nobody",
                                 [this] { return program::prune_cache(cache); }),
                             &cache);
  program::add_verify_options(
      add(of_cache, "verify", "read every kernel, and say which are damaged",
          [this] { return program::verify_cache(cache); }),
      &cache);
  program::add_verbs(*parser.add_subcommand("pattern", "patterns and their block layouts"),
                     &pattern);
  for (program::PatternVerb& verb : pattern) {
    verbs.push_back({verb.name, verb.app, [&verb] {
                       const WorkScope scope({.steps = verb.arguments.max_work});
                       return verb.run(verb.arguments);
                     }});
  }
  program::add_options(
      add(parser, "doctor", "what is installed here and what would be used",
          [this] { return traced(doctor.device, [&] { return program::doctor(doctor); }); }),
      &doctor);
}

// What the parser threw: help that was asked for, or words that it does not take.
int refuse(const CLI::App& parser, const CLI::ParseError& error, const char* first_word) {
  if (error.get_exit_code() == 0) return delivered(parser.exit(error));  // --help, --version
  if (parser.get_subcommands().empty()) {
    const std::string given =
        first_word != nullptr ? "'" + std::string(first_word) + "' is no verb" : "no verb";
    const std::string text =
        one_line(given) +
        "; use run, tune, tuned, warm, cache, pattern, explain or doctor, or see --help";
    return fail("", text.c_str(), Exit::kUsage);
  }
  const std::string verb = parser.get_subcommands().front()->get_name();
  const std::string text = one_line(error.what()) + "; see annulus " + verb + " --help";
  return fail(verb.c_str(), text.c_str(), Exit::kUsage);
}

}  // namespace

int main(int count, char** words) {
  keep_standard_streams();
  program::remember_command_line(count, words);
  signal(SIGXFSZ, SIG_IGN);  // a file beyond the user's limit is a write that fails, like any other
  CommandLine line;
  try {
    line.parser.parse(count, words);
  } catch (const CLI::ParseError& error) {
    return refuse(line.parser, error, count > 1 ? words[1] : nullptr);
  }
  for (const CommandLine::Verb& verb : line.verbs) {
    if (verb.app->parsed()) return guarded(verb.name.c_str(), verb.call);
  }
  return fail("", "no verb; see annulus --help", Exit::kUsage);
}
