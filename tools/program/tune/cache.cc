// annulus cache: lists, checks and prunes folders of compiled kernels.
#include <CLI/CLI.hpp>
#include <chrono>

#include "annulus/kernels.h"
#include "base/fail.h"
#include "program/cli/number_option.h"
#include "program/cli/output.h"
#include "program/cli/paths.h"
#include "program/cli/verb.h"
#include "program/input/options.h"

namespace annulus::program {
namespace {

struct CacheArguments {
  std::string cache_dir;  // like ANNULUS_CACHE_DIR
  double older_than_seconds = -1;
  std::int64_t max_bytes = -1;
  bool useless = false;
  bool dry_run = false;
  bool remove = false;
  bool json = false;
};

std::optional<std::string> folder_of(const CacheArguments& arguments) {
  if (arguments.cache_dir.empty()) return std::nullopt;
  return arguments.cache_dir == "none" ? "" : absolute_paths(arguments.cache_dir);
}

std::string size_text(std::int64_t kernels, std::int64_t bytes) {
  return fmt::format("{} kernels, {:.1f} MB", kernels, static_cast<double>(bytes) / 1e6);
}

// The time since `when`, as in "3 days".
std::string age(std::int64_t when) {
  const std::int64_t now = std::chrono::duration_cast<std::chrono::seconds>(
                               std::chrono::system_clock::now().time_since_epoch())
                               .count();
  const std::int64_t seconds = std::max<std::int64_t>(now - when, 0);
  if (seconds < 120) return fmt::format("{} s", seconds);
  if (seconds < 7200) return fmt::format("{} min", seconds / 60);
  if (seconds < 172800) return fmt::format("{} h", seconds / 3600);
  return fmt::format("{} days", seconds / 86400);
}

base::Json json_of(const KernelListing& listing, bool compiled_ahead) {
  base::Json json = {{"folder", listing.folder},   {"compiled_ahead", compiled_ahead},
                     {"usable", listing.usable},   {"problem", listing.problem},
                     {"kernels", listing.kernels}, {"bytes", listing.bytes}};
  json["sets"] = base::Json::array();
  for (const KernelSet& set : listing.sets) {
    json["sets"].push_back({{"origin", set.origin},
                            {"kernels", set.kernels},
                            {"bytes", set.bytes},
                            {"oldest", set.oldest},
                            {"newest", set.newest}});
  }
  return json;
}

void print(const KernelListing& listing, bool compiled_ahead) {
  const std::string name = compiled_ahead ? "ahead" : "cache";
  if (!listing.usable) {
    return print_line(name, listing.problem.empty() ? "no folder is set" : listing.problem);
  }
  print_line(name,
             fmt::format("{}: {}", listing.folder, size_text(listing.kernels, listing.bytes)));
  for (const KernelSet& set : listing.sets) {
    print_line("", fmt::format("{}, {} to {} old: {}", size_text(set.kernels, set.bytes),
                               age(set.newest), age(set.oldest), printable(set.origin)));
  }
}

// Without --cache-dir the list has every folder that a device would search.
Exit list_cache(const CacheArguments& arguments) {
  const KernelListing cache = list_kernels(folder_of(arguments));
  std::vector<KernelListing> ahead;
  if (arguments.cache_dir.empty()) ahead = list_shipped_kernels();
  if (arguments.json) {
    base::Json json = {{"folders", {json_of(cache, false)}}};
    for (const KernelListing& each : ahead) json["folders"].push_back(json_of(each, true));
    print_json(json);
  } else {
    print(cache, false);
    for (const KernelListing& each : ahead) print(each, true);
  }
  return cache.usable || cache.folder.empty() ? Exit::kOk : Exit::kInvalidFile;
}

Exit prune_cache(const CacheArguments& arguments) {
  if (arguments.older_than_seconds < 0 && arguments.max_bytes < 0 && !arguments.useless) {
    base::fail(
        ErrorCode::kInvalidArgument,
        "no rule selects the kernels to remove; give --older-than, --max-bytes or --useless");
  }
  const PruneResult result = prune_kernels({.folder = folder_of(arguments),
                                            .older_than_seconds = arguments.older_than_seconds,
                                            .useless = arguments.useless,
                                            .max_bytes = arguments.max_bytes,
                                            .dry_run = arguments.dry_run});
  if (arguments.json) {
    print_json({{"folder", result.folder},
                {"dry_run", arguments.dry_run},
                {"removed", result.removed},
                {"removed_bytes", result.removed_bytes},
                {"left", result.left},
                {"left_bytes", result.left_bytes},
                {"problems", result.problems}});
  } else {
    print_line("folder", result.folder);
    print_line(arguments.dry_run ? "would go" : "removed",
               size_text(result.removed, result.removed_bytes));
    print_line("left", size_text(result.left, result.left_bytes));
    for (const std::string& problem : result.problems) print_line("problem", printable(problem));
  }
  return result.problems.empty() ? Exit::kOk : Exit::kInvalidFile;
}

// The exit code shows whether damaged files remain.
Exit verify_cache(const CacheArguments& arguments) {
  const VerifyResult result = verify_kernels(folder_of(arguments), arguments.remove);
  bool stays = false;
  for (const DamagedKernel& damaged : result.damaged) stays = stays || !damaged.removed;
  if (arguments.json) {
    base::Json json = {
        {"folder", result.folder}, {"kernels", result.kernels}, {"bytes", result.bytes}};
    json["damaged"] = base::Json::array();
    for (const DamagedKernel& damaged : result.damaged) {
      json["damaged"].push_back(
          {{"name", damaged.name}, {"why", damaged.why}, {"removed", damaged.removed}});
    }
    print_json(json);
  } else {
    print_line("folder", result.folder);
    print_line("whole", size_text(result.kernels, result.bytes));
    for (const DamagedKernel& damaged : result.damaged) {
      print_line("damaged", fmt::format("{}: {}{}", printable(damaged.name), damaged.why,
                                        damaged.removed ? "; removed" : ""));
    }
  }
  return stays ? Exit::kInvalidFile : Exit::kOk;
}

// Accepts a number of bytes such as "500M", "2G" or "1000000".
CLI::Validator bytes() {
  CLI::Validator validator;
  validator.operation([](std::string& text) -> std::string {
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    const std::string_view unit(end, static_cast<std::size_t>(text.data() + text.size() - end));
    const std::int64_t each = unit == "G" ? 1'000'000'000 : unit == "M" ? 1'000'000 : unit.empty();
    if (error != std::errc() || each == 0 || value < 0 || value > 1'000'000'000'000 / each) {
      return fmt::format("'{}' is not a number of bytes; write 500M, 2G or 1000000", text);
    }
    text = std::to_string(value * each);
    return {};
  });
  return validator;
}

void add_cache(CLI::App& app, CacheArguments* arguments) {
  app.add_option("--cache-dir", arguments->cache_dir,
                 "folder of compiled kernels; default: ANNULUS_CACHE_DIR, else the user's cache "
                 "folder")
      ->type_name(kFolder);
  add_json(app, &arguments->json);
}

void add_prune_options(CLI::App& app, CacheArguments* arguments) {
  add_cache(app, arguments);
  app.add_option("--older-than", arguments->older_than_seconds,
                 "remove kernels older than this, as 12h or 30d")
      ->type_name("TIME")
      ->transform(duration());
  app.add_option("--max-bytes", arguments->max_bytes,
                 "remove the oldest until no more than this are left, as 500M or 2G")
      ->type_name("BYTES")
      ->transform(bytes());
  app.add_flag("--useless", arguments->useless,
               "remove kernels that no device here, real or simulated, can run with the NVRTC that "
               "is found");
  app.add_flag("--dry-run", arguments->dry_run, "print what would be removed; remove nothing");
}

void add_verify_options(CLI::App& app, CacheArguments* arguments) {
  add_cache(app, arguments);
  app.add_flag("--remove", arguments->remove, "remove files that are damaged");
}

}  // namespace

const Verb verb_cache_list = {"cache list",
                              "the stored kernels, by what they were compiled for",
                              {"annulus cache list"},
                              add_verb<CacheArguments, add_cache, list_cache>};
const Verb verb_cache_prune = {"cache prune",
                               "remove kernels that are old or that no device here can run",
                               {"annulus cache prune --older-than 30d --max-bytes 2G --dry-run"},
                               add_verb<CacheArguments, add_prune_options, prune_cache>};
const Verb verb_cache_verify = {"cache verify",
                                "read every kernel, and name the damaged ones",
                                {"annulus cache verify --remove"},
                                add_verb<CacheArguments, add_verify_options, verify_cache>};

}  // namespace annulus::program
