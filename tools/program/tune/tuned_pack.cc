// annulus tuned export, import, merge, diff, verify, prune, remove, why: tuned results that travel.
#include "annulus/tune.h"

#include <algorithm>
#include <cstdio>
#include <initializer_list>
#include <map>
#include <tuple>

#include "program/cli/interruption.h"
#include "program/cli/number_option.h"
#include "program/cli/output.h"
#include "program/cli/paths.h"
#include "program/input/batch_input.h"
#include "program/input/options.h"
#include "program/input/problem_input.h"
#include "program/tune/tuned_text.h"

namespace annulus::program {
namespace {

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
    // A file that holds no entry has a path alone.
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

// The first `most` notes, under their devices, then how many there are of each verdict.
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

// Files and lines that this build cannot read are not in what was written.
Exit print_written(const PackArguments& arguments, const TunedReport& report) {
  print(arguments, report);
  return report.left_out.empty() ? Exit::kOk : Exit::kPartial;
}

}  // namespace

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

namespace {

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

}  // namespace

Exit why_tuned(const PackArguments& arguments) {
  constexpr std::size_t kMostShown = 20;
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
  print_notes(report, kMostShown);
  return Exit::kOk;
}

}  // namespace annulus::program
