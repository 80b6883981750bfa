// annulus cache: what folders of compiled kernels hold, and what may go.
#include <chrono>

#include "annulus/kernels.h"
#include "base/fail.h"
#include "program/cli/output.h"
#include "program/cli/paths.h"
#include "program/input/options.h"

namespace annulus::program {
namespace {

std::optional<std::string> folder_of(const CacheArguments& arguments) {
  if (arguments.cache_dir.empty()) return std::nullopt;
  return arguments.cache_dir == "none" ? "" : absolute_paths(arguments.cache_dir);
}

std::string size_text(std::int64_t kernels, std::int64_t bytes) {
  return fmt::format("{} kernels, {:.1f} MB", kernels, static_cast<double>(bytes) / 1e6);
}

// "3 days": how long ago.
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

}  // namespace

// Without a folder all that a device would look at is listed.
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
    base::fail(ErrorCode::kInvalidArgument,
               "nothing says what to remove; give --older-than, --max-bytes or --useless");
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

// Damaged files that stay are told by the exit code as well.
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

}  // namespace annulus::program
