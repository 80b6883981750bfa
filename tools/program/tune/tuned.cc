// annulus tuned: lists and shows tuned results, with the machine or pack that each came from.
#include <CLI/CLI.hpp>
#include <cstdio>

#include "annulus/tune.h"
#include "base/fail.h"
#include "program/cli/output.h"
#include "program/cli/verb.h"
#include "program/input/options.h"
#include "program/tune/tuned_text.h"

namespace annulus::program {
namespace {

struct TunedArguments {
  std::string path;  // like ANNULUS_TUNED
  std::string name;  // show: a part of an entry's name or path; empty: all entries
  bool json = false;
};

TunedListing listing_of(const TunedArguments& arguments) {
  return annulus::list_tuned(tuned_path_of(arguments.path));
}

Exit print_all(const TunedListing& listing, const std::vector<const TunedEntry*>& entries) {
  base::Json json;
  json["folders"] = listing.folders;
  json["entries"] = base::Json::array();
  for (const TunedEntry* entry : entries) json["entries"].push_back(tuned_json(*entry));
  json["ignored"] = listing.ignored;
  print_json(json);
  return Exit::kOk;
}

void print_none(const TunedListing& listing) {
  std::string folders;
  for (const std::string& folder : listing.folders) folders += " " + folder;
  std::printf("nothing is tuned%s\n",
              folders.empty() ? "; no folder is set" : (" in" + folders).c_str());
}

Exit list_tuned(const TunedArguments& arguments) {
  const TunedListing listing = listing_of(arguments);
  std::vector<const TunedEntry*> entries;
  for (const TunedEntry& entry : listing.entries) entries.push_back(&entry);
  if (arguments.json) return print_all(listing, entries);
  std::string device;
  for (const TunedEntry* entry : entries) {
    if (entry->device != device) std::printf("%s\n", printable(entry->device).c_str());
    device = entry->device;
    std::printf("  %s  %-28s %.3f  %s%s\n", short_name(*entry).c_str(), entry->config.c_str(),
                ratio(*entry), problem_of(*entry).c_str(),
                !entry->outdated.empty() ? " (outdated)"
                : entry->complete        ? ""
                                         : " (not finished)");
  }
  for (const std::string& line : listing.ignored) {
    std::printf("ignored    %s\n", printable(line).c_str());
  }
  if (entries.empty()) print_none(listing);
  return Exit::kOk;
}

Exit show_tuned(const TunedArguments& arguments) {
  const TunedListing listing = listing_of(arguments);
  std::vector<const TunedEntry*> entries;
  for (const TunedEntry& entry : listing.entries) {
    if (entry.path.find(arguments.name) == std::string::npos &&
        entry.name.find(arguments.name) == std::string::npos) {
      continue;
    }
    entries.push_back(&entry);
  }
  if (entries.empty() && !arguments.name.empty()) {
    base::fail(ErrorCode::kInvalidArgument,
               "no tuned entry has '{}' in its name or path; annulus tuned list names them",
               arguments.name);
  }
  if (arguments.json) return print_all(listing, entries);
  for (const TunedEntry* entry : entries) {
    print_line("entry",
               entry->packed ? fmt::format("{} in {}", entry->name, entry->path) : entry->path);
    if (!entry->outdated.empty()) print_line("not used", entry->outdated);
    print_line("device", printable(entry->device));
    print_line("of", problem_of(*entry));
    print_line("for", entry->shape);
    print_line("config", entry->config);
    print_line("time", fmt::format("{:.1f} {}, the default's {:.1f}: {:.3f} of it ({:.3f} to "
                                   "{:.3f})",
                                   entry->time, entry->predicted ? "predicted cycles" : "us",
                                   entry->default_time, ratio(*entry), entry->ratio_low,
                                   entry->ratio_high));
    print_line("from", fmt::format("{} rounds, {} candidates{}", entry->rounds, entry->candidates,
                                   entry->complete ? "" : "; the search was not finished"));
    if (!entry->runner_up.empty()) print_line("next", entry->runner_up);
    print_line("default", entry->default_config);
    print_line("made",
               fmt::format("{}, library {}.{}.{}, driver {}, NVRTC {}, {} MHz, memory {} MHz",
                           date_text(entry->when), entry->library_version / 10000,
                           entry->library_version / 100 % 100, entry->library_version % 100,
                           version_text(entry->driver_version), version_text(entry->nvrtc_version),
                           entry->clock_mhz, entry->memory_clock_mhz));
    std::printf("\n");
  }
  for (const std::string& line : listing.ignored) print_line("ignored", printable(line));
  if (entries.empty()) print_none(listing);
  return Exit::kOk;
}

void add_list_options(CLI::App& app, TunedArguments* arguments) {
  add_tuned_path(app, &arguments->path);
  add_json(app, &arguments->json);
}

void add_show_options(CLI::App& app, TunedArguments* arguments) {
  add_list_options(app, arguments);
  app.add_option("name", arguments->name, "part of an entry's name or path; default: all entries");
}

}  // namespace

const Verb verb_tuned_list = {"tuned list",
                              "one line for each entry",
                              {"annulus tuned list --json"},
                              add_verb<TunedArguments, add_list_options, list_tuned>};
const Verb verb_tuned_show = {"tuned show",
                              "entries with all that is known",
                              {"annulus tuned show"},
                              add_verb<TunedArguments, add_show_options, show_tuned>};

}  // namespace annulus::program
