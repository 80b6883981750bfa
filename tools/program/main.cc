// The program annulus: one verb each for running, tuning, explaining and checking the
// installation.
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <new>

#include "annulus/version.h"
#include "program/options.h"
#include "program/pattern.h"

namespace {

using namespace annulus;
using program::Exit;

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
    return fail(name, one_line(error.what()).c_str(), program::exit_code(error.code()));
  } catch (const std::bad_alloc&) {
    return fail(name, "out of host memory; use a smaller problem", Exit::kDevice);
  } catch (const std::exception& error) {
    return fail(name, one_line(error.what()).c_str(), Exit::kInternal);
  }
}

}  // namespace

int main(int count, char** words) {
  keep_standard_streams();
  signal(SIGXFSZ, SIG_IGN);  // a file beyond the user's limit is a write that fails, like any other
  CLI::App app("Block-sparse attention kernels, written, compiled and run at run time");
  app.name("annulus");
  app.require_subcommand(1);
  app.set_version_flag("--version", std::to_string(ANNULUS_VERSION_MAJOR) + "." +
                                        std::to_string(ANNULUS_VERSION_MINOR) + "." +
                                        std::to_string(ANNULUS_VERSION_PATCH));
  app.footer(
      "Exit codes: 0 ok, 1 internal, 2 usage, 3 partial, 4 device, 5 invalid file, 6 wrong "
      "result.");

  program::RunArguments run;
  CLI::App* run_verb = app.add_subcommand("run", "one attention problem, checked by the oracle");
  program::add_options(*run_verb, &run);
  program::ExplainArguments explain;
  CLI::App* explain_verb =
      app.add_subcommand("explain", "which kernel a problem gets, and why; runs nothing");
  program::add_options(*explain_verb, &explain);
  program::TuneArguments tune;
  CLI::App* tune_verb =
      app.add_subcommand("tune", "find the fastest configuration for problems, and keep it");
  program::add_options(*tune_verb, &tune);
  program::TunedArguments tuned;
  CLI::App* tuned_verb = app.add_subcommand("tuned", "what has been tuned");
  tuned_verb->require_subcommand(1);
  CLI::App* list_verb = tuned_verb->add_subcommand("list", "one line for each entry");
  program::add_list_options(*list_verb, &tuned);
  CLI::App* show_verb = tuned_verb->add_subcommand("show", "entries with all that is known");
  program::add_show_options(*show_verb, &tuned);
  program::PatternVerbs pattern;
  program::add_verbs(*app.add_subcommand("pattern", "patterns and their block layouts"), &pattern);
  program::DoctorArguments doctor;
  CLI::App* doctor_verb =
      app.add_subcommand("doctor", "what is installed here and what would be used");
  program::add_options(*doctor_verb, &doctor);

  try {
    app.parse(count, words);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return delivered(app.exit(error));  // --help, --version
    if (app.get_subcommands().empty()) {
      const std::string given =
          count > 1 ? "'" + std::string(words[1]) + "' is no verb" : "no verb";
      return fail(
          "",
          (one_line(given) + "; use run, tune, tuned, pattern, explain or doctor, or see --help")
              .c_str(),
          Exit::kUsage);
    }
    const std::string verb = app.get_subcommands().front()->get_name();
    return fail(verb.c_str(),
                (one_line(error.what()) + "; see annulus " + verb + " --help").c_str(),
                Exit::kUsage);
  }
  if (run_verb->parsed()) return guarded("run", [&] { return program::run(run); });
  if (explain_verb->parsed()) {
    return guarded("explain", [&] { return program::explain(explain); });
  }
  if (tune_verb->parsed()) return guarded("tune", [&] { return program::tune(tune); });
  if (list_verb->parsed()) {
    return guarded("tuned list", [&] { return program::list_tuned(tuned); });
  }
  if (show_verb->parsed()) {
    return guarded("tuned show", [&] { return program::show_tuned(tuned); });
  }
  if (const program::PatternVerb* chosen = program::chosen_verb(pattern)) {
    return guarded(chosen->name.c_str(), [&] { return chosen->run(chosen->arguments); });
  }
  if (doctor_verb->parsed()) return guarded("doctor", [&] { return program::doctor(doctor); });
  return fail("", "no verb; see annulus --help", Exit::kUsage);
}
