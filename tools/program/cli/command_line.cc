#include "program/cli/command_line.h"

#include <fmt/core.h>

#include "annulus/types.h"
#include "annulus/version.h"
#include "program/cli/traced.h"

namespace annulus::program {
namespace {

constexpr ExitMeaning kExitMeanings[] = {
    {Exit::kOk, "ok"},
    {Exit::kInternal, "internal"},
    {Exit::kUsage, "usage, or larger than this machine's memory"},
    {Exit::kPartial, "partial, or nothing was compared"},
    {Exit::kDevice, "device"},
    {Exit::kInvalidFile, "invalid file"},
    {Exit::kWrongResult, "wrong result"},
};

struct Example {
  std::string_view verb;
  std::string_view line;
};
constexpr Example kExamples[] = {
    {"run", "annulus run -H 2 -S 512 -D 64 -p 'causal & window(127, 0)'"},
    {"run", "annulus run -H 2 -S 256 -D 64 -p causal --ranks 4 --shard zigzag --json"},
    {"explain", "annulus explain -H 32 --kv-heads 8 -S 8192 -p 'preset(longformer)'"},
    {"explain", "annulus explain --device h100 -S 16384 -p causal --brief"},
    {"explain", "annulus explain --device sim:sm_90a --requests '1/4096 x 8, 512/2048' -p causal"},
    {"tune", "annulus tune --heads 32 --kv-heads 8 --seq 4096 --pattern causal --time-limit 10m"},
    {"tune", "annulus tune --shapes common --dry-run"},
    {"tune", "annulus tune --model llama-3-8b"},
    {"tune", "annulus tune --most-requests 64 --most-keys-of-one 8192 -p causal --dry-run"},
    {"tune report", "annulus tune report -o report.html"},
    {"warm", "annulus warm --shapes small --device h100 --into kernels"},
    {"tuned list", "annulus tuned list --json"},
    {"tuned show", "annulus tuned show"},
    {"tuned export", "annulus tuned export fleet.pack --measured --complete"},
    {"tuned import", "annulus tuned import fleet.pack"},
    {"tuned merge", "annulus tuned merge old.pack new.pack -o fleet.pack"},
    {"tuned diff", "annulus tuned diff old.pack new.pack"},
    {"tuned verify", "annulus tuned verify fleet.pack --measure 10"},
    {"tuned prune", "annulus tuned prune --dry-run"},
    {"tuned remove", "annulus tuned remove causal --dry-run"},
    {"tuned why", "annulus tuned why -H 32 --kv-heads 8 -S 4096 -p causal"},
    {"tuned why", "annulus tuned why --requests '1/4096 x 64, 512/2048' -p causal"},
    {"cache list", "annulus cache list"},
    {"cache prune", "annulus cache prune --older-than 30d --max-bytes 2G --dry-run"},
    {"cache verify", "annulus cache verify --remove"},
    {"pattern list", "annulus pattern list"},
    {"pattern presets", "annulus pattern presets --json"},
    {"pattern draw", "annulus pattern draw -p 'causal & (window(255, 0) | global(16))' -S 2048"},
    {"pattern draw", "annulus pattern draw -p 'preset(bigbird)' -H 8 -S 4096 --svg bigbird.svg"},
    {"pattern stats",
     "annulus pattern stats -p 'preset(strided)' -S 4096 --block 64x64 --layers 4"},
    {"pattern diff", "annulus pattern diff old.layout new.layout"},
    {"pattern export",
     "annulus pattern export -p causal -S 1024 --block 64x64 --to csr mask.safetensors"},
    {"pattern import", "annulus pattern import --from csr mask.safetensors mask.layout"},
    {"pattern import", "annulus pattern import --from npy --block 64x64 mask.npy mask.layout"},
    {"doctor", "annulus doctor --device sim:sm_90a"},
    {"help", "annulus help pattern draw"},
};

std::string exit_codes_text() {
  std::string text;
  for (const ExitMeaning& each : kExitMeanings) {
    text += fmt::format("{}{} {}", text.empty() ? "Exit codes: " : ", ",
                        static_cast<int>(each.exit), each.meaning);
  }
  return text + ".";
}

std::string footer_of(const std::string& verb) {
  std::string text = "Examples:\n";
  for (const std::string_view line : examples_of(verb)) text += fmt::format("  {}\n", line);
  return text + "\n" + exit_codes_text();
}

}  // namespace

std::span<const ExitMeaning> exit_meanings() { return kExitMeanings; }

std::vector<std::string_view> examples_of(std::string_view verb) {
  std::vector<std::string_view> lines;
  for (const Example& each : kExamples) {
    if (each.verb == verb) lines.push_back(each.line);
  }
  return lines;
}

std::string full_name(const CLI::App& app) {
  if (app.get_parent() == nullptr) return app.get_name();
  return full_name(*app.get_parent()) + " " + app.get_name();
}

std::string names_below(const CLI::App& app) {
  const std::vector<const CLI::App*> below =
      app.get_subcommands([](const CLI::App*) { return true; });
  std::string text;
  for (const CLI::App* each : below) {
    if (!text.empty()) text += each == below.back() ? " or " : ", ";
    text += each->get_name();
  }
  return text;
}

CLI::App& CommandLine::add(CLI::App& parent, const char* name, const char* help,
                           std::function<Exit()> call) {
  CLI::App* app = parent.add_subcommand(name, help);
  const bool top = &parent == &parser;
  verbs.push_back({top ? name : parent.get_name() + " " + name, app, std::move(call)});
  return *app;
}

CLI::App& CommandLine::add_group(const char* name, const char* help) {
  CLI::App* app = parser.add_subcommand(name, help);
  app->require_subcommand(1);
  return *app;
}

CommandLine::CommandLine() {
  parser.name("annulus");
  parser.require_subcommand(1);
  parser.footer(exit_codes_text());  // verbs inherit it
  parser.set_version_flag("--version", std::to_string(ANNULUS_VERSION_MAJOR) + "." +
                                           std::to_string(ANNULUS_VERSION_MINOR) + "." +
                                           std::to_string(ANNULUS_VERSION_PATCH));

  add_options(add(parser, "run", "one attention problem, checked by the oracle",
                  [this] { return traced(run_.device, [&] { return program::run(run_); }); }),
              &run_);
  add_options(
      add(parser, "explain", "which kernel a problem gets, and why; runs nothing",
          [this] { return traced(explain_.device, [&] { return program::explain(explain_); }); }),
      &explain_);
  CLI::App& of_tune =
      add(parser, "tune", "find the fastest configuration for problems, and keep it",
          [this] { return traced(tune_.device, [&] { return program::tune(tune_); }); });
  add_options(of_tune, &tune_);
  add_options(add(of_tune, "report", "a page that shows searches and what was tuned",
                  [this] { return report_tuning(tune_report_); }),
              &tune_report_);
  add_options(add(parser, "warm", "compile the kernels of problems ahead, into a folder to ship",
                  [this] { return program::warm(warm_); }),
              &warm_);
  CLI::App& of_tuned = add_group("tuned", "what has been tuned, and packs of it");
  add_list_options(
      add(of_tuned, "list", "one line for each entry", [this] { return list_tuned(tuned_); }),
      &tuned_);
  add_show_options(add(of_tuned, "show", "entries with all that is known",
                       [this] { return show_tuned(tuned_); }),
                   &tuned_);
  struct PackVerb {
    const char* name;
    const char* help;
    void (*add_options)(CLI::App&, PackArguments*);
    Exit (*call)(const PackArguments&);
  };
  static constexpr PackVerb kPackVerbs[] = {
      {"export", "write entries to a pack", add_export_options, export_tuned},
      {"import", "bring the entries of packs into the first folder", add_import_options,
       import_tuned},
      {"merge", "write all entries of some packs to one", add_merge_options, merge_tuned},
      {"diff", "in what two packs differ", add_diff_options, diff_tuned},
      {"verify", "whether entries serve this device, and hold where they are measured again",
       add_verify_options, verify_tuned},
      {"prune", "remove what no plan of this build or a newer one uses", add_prune_options,
       prune_tuned},
      {"remove", "remove one entry", add_remove_options, remove_tuned},
      {"why", "which entry a problem or batch uses, and why not each other one", add_why_options,
       why_tuned}};
  for (const PackVerb& verb : kPackVerbs) {
    verb.add_options(add(of_tuned, verb.name, verb.help,
                         [this, call = verb.call] {
                           return traced(packs_.device, [&] { return call(packs_); });
                         }),
                     &packs_);
  }
  CLI::App& of_cache = add_group("cache", "folders of compiled kernels");
  add_list_options(add(of_cache, "list", "what is there, by what it was compiled for",
                       [this] { return list_cache(cache_); }),
                   &cache_);
  add_prune_options(add(of_cache, "prune", "remove kernels that are old or serve nobody",
                        [this] { return prune_cache(cache_); }),
                    &cache_);
  add_verify_options(add(of_cache, "verify", "read every kernel, and say which are damaged",
                         [this] { return verify_cache(cache_); }),
                     &cache_);
  add_verbs(add_group("pattern", "patterns and their block layouts"), &pattern_);
  for (PatternVerb& verb : pattern_) {
    verbs.push_back({verb.name, verb.app, [&verb] {
                       const WorkScope scope({.steps = verb.arguments.max_work});
                       return verb.run(verb.arguments);
                     }});
  }
  add_options(
      add(parser, "doctor", "what is installed here and what would be used",
          [this] { return traced(doctor_.device, [&] { return program::doctor(doctor_); }); }),
      &doctor_);
  add_options(add(parser, "help", "what --help says of a verb",
                  [this] { return program::help(parser, help_); }),
              &help_);
  for (Verb& verb : verbs) verb.app->footer(footer_of(verb.name));
}

}  // namespace annulus::program
