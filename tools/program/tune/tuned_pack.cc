// annulus tuned export, import, merge, diff, verify, prune, remove, why: works with tuned results
// and with packs, which carry results to other machines.
#include "annulus/tune.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <initializer_list>
#include <map>
#include <tuple>

#include "program/cli/interruption.h"
#include "program/cli/number_option.h"
#include "program/cli/output.h"
#include "program/cli/paths.h"
#include "program/cli/verb.h"
#include "program/input/batch_input.h"
#include "program/input/options.h"
#include "program/input/problem_input.h"
#include "program/tune/tuned_text.h"

namespace annulus::program {
namespace {

// The options of these verbs. Each verb reads the options that its help lists.
struct PackArguments {
  DeviceArguments device;      // verify, why, prune: with --tuned
  ProblemArguments shape;      // why
  std::string carry = "none";  // why
  BatchArguments batch;        // why: in place of a shape
  // Why: the number of blocks that each run chooses for a row; 0: runs choose no blocks.
  std::int64_t max_blocks = 0;
  std::string selected_blocks = "128x128";  // why: the size of these blocks
  std::vector<std::string> packs;           // import, merge, verify; diff: the two packs to compare
  std::string output;                       // export, merge: the pack to write
  std::string name;                         // export, import, remove
  std::string of;                           // export, import: a part of a device's identity
  bool measured = false;                    // export, import
  bool complete = false;                    // export, import
  bool others = false;                      // prune: also remove results of other devices
  bool dry_run = false;                     // prune, remove
  int measure = 0;                          // verify
  bool json = false;
};

TunedFilter filter_of(const PackArguments& arguments) {
  TunedFilter filter;
  filter.name = arguments.name;
  filter.device = arguments.of;
  filter.measured_only = arguments.measured;
  filter.complete_only = arguments.complete;
  return filter;
}

base::Json report_json(const TunedReport& report) {
  base::Json json;
  json["notes"] = base::Json::array();
  for (const TunedNote& note : report.notes) {
    base::Json each = {{"verdict", to_string(note.verdict)}, {"text", note.text}};
    // A file without an entry has only a path.
    each["entry"] =
        note.entry.name.empty() ? base::Json{{"path", note.entry.path}} : tuned_json(note.entry);
    json["notes"].push_back(std::move(each));
  }
  json["left_out"] = report.left_out;
  return json;
}

std::string entry_text(const TunedEntry& entry) {
  if (entry.name.empty()) return entry.path;
  return fmt::format("{}  {:<28} {:.3f}  {}", short_name(entry), entry.config, ratio(entry),
                     problem_of(entry));
}

// Prints the first `most` notes, grouped by device, and then the number of notes of each verdict.
void print_notes(const TunedReport& report, std::size_t most) {
  std::string device;
  std::map<TunedVerdict, std::size_t> counts;
  std::size_t printed = 0;
  for (const TunedNote& note : report.notes) {
    ++counts[note.verdict];
    if (++printed > most) continue;
    if (note.entry.device != device) std::printf("%s\n", printable(note.entry.device).c_str());
    device = note.entry.device;
    std::printf("  %-12s %s\n", to_string(note.verdict), printable(entry_text(note.entry)).c_str());
    if (!note.text.empty()) std::printf("  %-12s %s\n", "", printable(note.text).c_str());
  }
  for (const std::string& line : report.left_out) print_line("left out", printable(line));
  std::string text;
  for (const auto& [verdict, count] : counts) {
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", count, to_string(verdict));
  }
  if (printed > most) text += fmt::format("; the first {} are shown, --json has all", most);
  print_line("entries", text.empty() ? "none" : text);
}

void print_dry_run(const PackArguments& arguments) {
  if (arguments.dry_run && !arguments.json) print_line("dry run", "nothing was removed");
}

constexpr std::size_t kAll = ~std::size_t{0};

Exit print(const PackArguments& arguments, const TunedReport& report, std::size_t most = kAll) {
  if (arguments.json) {
    print_json(report_json(report));
  } else {
    print_notes(report, most);
  }
  return Exit::kOk;
}

// Files and lines that this build cannot read are missing from the written pack, which gives
// another exit code.
Exit print_written(const PackArguments& arguments, const TunedReport& report) {
  print(arguments, report);
  return report.left_out.empty() ? Exit::kOk : Exit::kPartial;
}

Exit export_tuned(const PackArguments& arguments) {
  return print_written(arguments, annulus::export_tuned(arguments.output, filter_of(arguments),
                                                        tuned_path_of(arguments.device.tuned)));
}

Exit import_tuned(const PackArguments& arguments) {
  return print_written(arguments, annulus::import_tuned(arguments.packs, filter_of(arguments),
                                                        tuned_path_of(arguments.device.tuned)));
}

Exit merge_tuned(const PackArguments& arguments) {
  return print_written(arguments, annulus::merge_tuned(arguments.packs, arguments.output));
}

Exit diff_tuned(const PackArguments& arguments) {
  return print(arguments, annulus::diff_tuned(absolute_paths(arguments.packs[0]),
                                              absolute_paths(arguments.packs[1])));
}

Exit verify_tuned(const PackArguments& arguments) {
  const Interruption interruption;
  const Device device = Device::open(device_options(arguments.device));
  TunedVerifyOptions options;
  options.packs = arguments.packs;
  options.measure = arguments.measure;
  options.seed = arguments.shape.seed;
  options.cancel = &interruption.arrived();
  Progress progress("measuring");
  int done = 0;
  options.progress = [&](const TunedNote& note) {
    progress.say(
        fmt::format("{} of {}, the last {}", ++done, arguments.measure, to_string(note.verdict)));
  };
  const TunedReport report = annulus::verify_tuned(device, options);
  print(arguments, report);
  const auto any = [&](std::initializer_list<TunedVerdict> verdicts) {
    return std::ranges::any_of(report.notes, [&](const TunedNote& note) {
      return std::ranges::find(verdicts, note.verdict) != verdicts.end();
    });
  };
  using enum TunedVerdict;
  if (any({kFails})) return Exit::kWrongResult;
  if (!report.left_out.empty()) return Exit::kInvalidFile;
  const bool compared =
      arguments.measure > 0 ? any({kHolds, kWeaker}) : any({kUsed, kHolds, kWeaker});
  if (!compared) {
    std::fprintf(stderr, "annulus tuned verify: nothing was compared: %s\n",
                 report.notes.empty() ? "there is no entry"
                                      : "no entry was used or measured on this device");
  }
  const bool partial = interruption.arrived() || any({kNotMeasured}) || !compared;
  return partial ? Exit::kPartial : Exit::kOk;
}

Exit prune_tuned(const PackArguments& arguments) {
  const DeviceOptions options = device_options(arguments.device);
  std::optional<std::string> key;
  if (arguments.others) key = Device::open(options).info().tuned_key;
  print(arguments, annulus::prune_tuned(options.tuned_path, key, arguments.dry_run));
  print_dry_run(arguments);
  return Exit::kOk;
}

Exit remove_tuned(const PackArguments& arguments) {
  print(arguments, annulus::remove_tuned(arguments.name, tuned_path_of(arguments.device.tuned),
                                         arguments.dry_run));
  print_dry_run(arguments);
  return Exit::kOk;
}

TunedReport why_of(const Device& device, const PackArguments& arguments) {
  if (arguments.batch.given()) {
    const BatchInput batch = make_batch(arguments.shape, arguments.batch, arguments.carry);
    return annulus::why_tuned(device, batch.problem, batch.options);
  }
  const Problem problem = make_shape(arguments.shape, arguments.carry);
  if (arguments.max_blocks == 0) return annulus::why_tuned(device, problem);
  Selection selection;
  selection.max_blocks = arguments.max_blocks;
  std::tie(selection.block_rows, selection.block_columns) =
      two_numbers(arguments.selected_blocks, 'x', "--selected-blocks (RxC)");
  return annulus::why_tuned(device, problem, selection);
}

Exit why_tuned(const PackArguments& arguments) {
  constexpr std::size_t kMaxShown = 20;
  const Device device = Device::open(device_options(arguments.device));
  const TunedReport report = why_of(device, arguments);
  if (arguments.json) {
    base::Json json = report_json(report);
    json["shape"] = report.shape;
    json["config"] = report.config;
    json["reason"] = report.reason;
    json["tuned_key"] = device.info().tuned_key;
    print_json(json);
    return Exit::kOk;
  }
  print_line("device", device.info().tuned_key);
  print_line("problem", report.shape);
  print_line("config", report.config);
  print_line("reason", report.reason);
  print_notes(report, kMaxShown);
  return Exit::kOk;
}

void add_filter(CLI::App& app, PackArguments* arguments) {
  app.add_option("--name", arguments->name, "only entries that have this in their name or path");
  app.add_option("--of", arguments->of, "only entries whose device has this in its name");
  app.add_flag("--measured", arguments->measured, "only measured entries");
  app.add_flag("--complete", arguments->complete, "only entries of complete searches");
}

void add_dry_run(CLI::App& app, PackArguments* arguments) {
  app.add_flag("--dry-run", arguments->dry_run, "print what would be removed; remove nothing");
}

void add_export_options(CLI::App& app, PackArguments* arguments) {
  app.add_option("pack", arguments->output, "the pack to write")->type_name(kFile)->required();
  add_tuned_path(app, &arguments->device.tuned);
  add_filter(app, arguments);
  add_json(app, &arguments->json);
}

void add_import_options(CLI::App& app, PackArguments* arguments) {
  app.add_option("packs", arguments->packs, "the packs to import")->type_name(kFile)->required();
  add_tuned_path(app, &arguments->device.tuned);
  add_filter(app, arguments);
  add_json(app, &arguments->json);
}

void add_merge_options(CLI::App& app, PackArguments* arguments) {
  app.add_option("packs", arguments->packs, "the packs to merge")->type_name(kFile)->required();
  app.add_option("--output,-o", arguments->output, "the pack to write")
      ->type_name(kFile)
      ->required();
  add_json(app, &arguments->json);
}

void add_diff_options(CLI::App& app, PackArguments* arguments) {
  app.add_option("packs", arguments->packs, "two packs, or search paths")
      ->type_name(kFile)
      ->required()
      ->expected(2);
  add_json(app, &arguments->json);
}

void add_verify_options(CLI::App& app, PackArguments* arguments) {
  app.add_option("packs", arguments->packs, "packs; default: the entries of the search path")
      ->type_name(kFile);
  add_device(app, &arguments->device);
  add_number(app, "--measure", &arguments->measure,
             "entries to measure again with the heuristic's choice; default: none")
      ->check(CLI::Range(0, 1000000));
  add_number(app, "--seed", &arguments->shape.seed,
             "of random operands and of the choice of entries");
  add_json(app, &arguments->json);
}

void add_prune_options(CLI::App& app, PackArguments* arguments) {
  add_device(app, &arguments->device);
  app.add_flag("--others", arguments->others, "also entries of devices other than the opened one");
  add_dry_run(app, arguments);
  add_json(app, &arguments->json);
}

void add_remove_options(CLI::App& app, PackArguments* arguments) {
  app.add_option("name", arguments->name, "part of one entry's name or path")->required();
  add_tuned_path(app, &arguments->device.tuned);
  add_dry_run(app, arguments);
  add_json(app, &arguments->json);
}

void add_why_options(CLI::App& app, PackArguments* arguments) {
  add_device(app, &arguments->device);
  add_shape_options(app, &arguments->shape, &arguments->carry);
  add_batch(app, &arguments->batch);
  add_bounds(app, &arguments->batch);
  CLI::Option* blocks =
      add_number(app, "--max-blocks", &arguments->max_blocks,
                 "blocks of a row that the plan's selection chooses in each run; 0: no selection");
  app.add_option("--selected-blocks", arguments->selected_blocks,
                 with_default("the size of these blocks", arguments->selected_blocks))
      ->type_name(kBlockSize)
      ->needs(blocks);
  add_json(app, &arguments->json);
}

}  // namespace

const Verb verb_tuned_export = {"tuned export",
                                "write entries to a pack",
                                {"annulus tuned export fleet.pack --measured --complete"},
                                add_verb<PackArguments, add_export_options, export_tuned>};
const Verb verb_tuned_import = {"tuned import",
                                "import the entries of packs into the first folder",
                                {"annulus tuned import fleet.pack"},
                                add_verb<PackArguments, add_import_options, import_tuned>};
const Verb verb_tuned_merge = {"tuned merge",
                               "write all entries of some packs to one",
                               {"annulus tuned merge old.pack new.pack -o fleet.pack"},
                               add_verb<PackArguments, add_merge_options, merge_tuned>};
const Verb verb_tuned_diff = {"tuned diff",
                              "the differences between two packs",
                              {"annulus tuned diff old.pack new.pack"},
                              add_verb<PackArguments, add_diff_options, diff_tuned>};
const Verb verb_tuned_verify = {
    "tuned verify",
    "whether this device can use entries, and whether new measurements confirm them",
    {"annulus tuned verify fleet.pack --measure 10"},
    add_verb<PackArguments, add_verify_options, verify_tuned>};
const Verb verb_tuned_prune = {"tuned prune",
                               "remove entries that no plan of this build or a newer one uses",
                               {"annulus tuned prune --dry-run"},
                               add_verb<PackArguments, add_prune_options, prune_tuned>};
const Verb verb_tuned_remove = {"tuned remove",
                                "remove one entry",
                                {"annulus tuned remove causal --dry-run"},
                                add_verb<PackArguments, add_remove_options, remove_tuned>};
const Verb verb_tuned_why = {"tuned why",
                             "the entry that a problem or batch uses, and why not the others",
                             {"annulus tuned why -H 32 --kv-heads 8 -S 4096 -p causal",
                              "annulus tuned why --requests '1/4096 x 64, 512/2048' -p causal"},
                             add_verb<PackArguments, add_why_options, why_tuned>};

}  // namespace annulus::program
