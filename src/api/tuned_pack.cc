// Packs of tuned results, and other operations on files of results. How a device uses them is in
// tuned_use.cc.
#include "annulus/tune.h"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <compare>
#include <utility>

#include "api/impl.h"
#include "api/tuned_places.h"
#include "api/tuned_text.h"
#include "base/env.h"
#include "base/fail.h"
#include "tuned/device_key.h"
#include "tuned/folder_work.h"
#include "tuned/listing.h"
#include "tuned/opened.h"
#include "tuned/tuned_pack.h"

namespace annulus {
namespace api {
namespace {

using tuned::ListedEntry;
using tuned::Listing;

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != text.npos;
}

bool is_meant(const ListedEntry& listed, const TunedFilter& filter) {
  if (!contains(listed.name, filter.name) && !contains(listed.path, filter.name)) return false;
  if (!contains(listed.device, filter.device)) return false;
  if (filter.measured_only && listed.entry.predicted) return false;
  return listed.entry.complete || !filter.complete_only;
}

// Lists a search path, without the installed results.
Listing list_path(base::FileSystem& files, const std::optional<std::string>& tuned_path,
                  tuned::Crowded crowded = tuned::Crowded::kIgnored) {
  return tuned::list_entries(files, tuned_places(tuned_path, base::read_environment()).folders,
                             crowded);
}

tuned::Pack pack_of(const std::vector<ListedEntry>& entries) {
  std::vector<tuned::PackedEntry> packed;
  for (const ListedEntry& listed : entries) packed.push_back({listed.device, listed.entry});
  return tuned::merged(std::move(packed));
}

TunedEntry tell_packed(const tuned::PackedEntry& packed, const std::string& path) {
  return tell({path, tuned::entry_name(packed.entry), packed.device, packed.entry, true, {}});
}

// The verdict on an added entry has the same number as its outcome.
constexpr TunedVerdict verdict_of(tuned::BroughtIn outcome) {
  return static_cast<TunedVerdict>(outcome);
}
static_assert(verdict_of(tuned::BroughtIn::kAdded) == TunedVerdict::kAdded);
static_assert(verdict_of(tuned::BroughtIn::kReplaced) == TunedVerdict::kReplaced);
static_assert(verdict_of(tuned::BroughtIn::kKept) == TunedVerdict::kKept);

// Reports what a pack holds now.
TunedReport report_of(const tuned::Pack& pack, const std::string& path, Listing from) {
  TunedReport report;
  for (const tuned::PackedEntry& packed : pack) {
    report.notes.push_back({tell_packed(packed, path), TunedVerdict::kAdded, {}});
  }
  report.left_out = std::move(from.ignored);
  return report;
}

// Writes the listed entries; there were `found` entries before some were left out. Without an entry
// nothing is written, because an earlier pack may exist.
TunedReport write_listed(base::FileSystem& files, const std::string& path, Listing listing,
                         std::size_t found) {
  const tuned::Pack made = pack_of(listing.entries);
  if (made.empty()) {
    base::fail(ErrorCode::kInvalidArgument, "{}, so no pack was written to '{}'; {}",
               found == 0 ? "there is no tuned result"
                          : fmt::format("the filter leaves none of the {} tuned results", found),
               path, found == 0 ? "tune first, or name another search path" : "use another filter");
  }
  tuned::write_pack(files, path, made);
  return report_of(made, path, std::move(listing));
}

// Lists what a path names: one pack in any place, or a search path. Throws Error{kFile} if there is
// nothing at the path.
Listing list_source(base::FileSystem& files, const std::string& source) {
  if (tuned::is_pack(source) && !contains(source, ":")) {
    return tuned::read_packs(files, {source});
  }
  const std::vector<std::string> places = tuned::split_path(source);
  const auto is_there = [&](const std::string& place) {
    const tuned::Opened opened{files, files.open(base::kHere, place, O_RDONLY | O_NONBLOCK, 0)};
    return opened.file != -ENOENT;
  };
  if (std::ranges::none_of(places, is_there)) {
    base::fail(ErrorCode::kFile,
               "nothing is at '{}'; name a pack, a folder of tuned results or a search path",
               source);
  }
  return tuned::list_entries(files, places);
}

// The differences of two entries for the same problems and kernels: "config mma ..., then mma ...".
std::string differences(const TunedEntry& a, const TunedEntry& b) {
  std::string text;
  const auto compare = [&](const char* what, const std::string& first, const std::string& second) {
    if (first == second) return;
    text += fmt::format("{}{} {}, then {}", text.empty() ? "" : "; ", what, first, second);
  };
  const auto complete = [](const TunedEntry& of) { return of.complete ? "finished" : "cut short"; };
  const auto ratio = [](const TunedEntry& of) {
    return fmt::format("{:.3f} ({:.3f} to {:.3f})", of.time / of.default_time, of.ratio_low,
                       of.ratio_high);
  };
  const auto driver = [](int version) {
    return fmt::format("{}.{}", version / 1000, version % 1000 / 10);
  };
  compare("config", a.config, b.config);
  compare("default", a.default_config, b.default_config);
  compare("search", complete(a), complete(b));
  compare("ratio", ratio(a), ratio(b));
  compare("driver", driver(a.driver_version), driver(b.driver_version));
  compare("NVRTC", driver(a.nvrtc_version), driver(b.nvrtc_version));
  return text.empty() ? "its origin" : text;
}

}  // namespace

}  // namespace api

inline namespace v0 {

const char* to_string(TunedVerdict verdict) {
  switch (verdict) {
    case TunedVerdict::kAdded:
      return "added";
    case TunedVerdict::kReplaced:
      return "replaced";
    case TunedVerdict::kKept:
      return "kept";
    case TunedVerdict::kFirstOnly:
      return "first only";
    case TunedVerdict::kSecondOnly:
      return "second only";
    case TunedVerdict::kDiffers:
      return "differs";
    case TunedVerdict::kUsed:
      return "used";
    case TunedVerdict::kUnused:
      return "not used";
    case TunedVerdict::kHolds:
      return "holds";
    case TunedVerdict::kWeaker:
      return "weaker";
    case TunedVerdict::kFails:
      return "fails";
    case TunedVerdict::kNotMeasured:
      return "not measured";
    case TunedVerdict::kRemoved:
      return "removed";
  }
  return "unknown verdict";
}

TunedReport export_tuned(const std::string& pack, const TunedFilter& filter,
                         const std::optional<std::string>& tuned_path) {
  base::FileSystem files;
  tuned::Listing listing = api::list_path(files, tuned_path);
  const std::size_t found = listing.entries.size();
  std::erase_if(listing.entries, [&](const auto& each) { return !api::is_meant(each, filter); });
  return api::write_listed(files, pack, std::move(listing), found);
}

TunedReport import_tuned(const std::vector<std::string>& packs, const TunedFilter& filter,
                         const std::optional<std::string>& tuned_path) {
  base::FileSystem files;
  tuned::Listing listing = tuned::read_packs(files, packs);
  std::erase_if(listing.entries, [&](const auto& each) { return !api::is_meant(each, filter); });
  const tuned::Pack pack = api::pack_of(listing.entries);
  std::string problems;
  for (const std::string& folder :
       api::tuned_places(tuned_path, base::read_environment()).folders) {
    if (tuned::is_pack(folder)) continue;
    try {
      const std::vector<tuned::BroughtIn> outcomes = tuned::bring_in(files, folder, pack);
      TunedReport report;
      for (std::size_t i = 0; i < pack.size(); ++i) {
        TunedNote note{api::tell_packed(pack[i], folder + "/" + tuned::folder_for(pack[i].device) +
                                                     "/" + tuned::entry_name(pack[i].entry) +
                                                     std::string(tuned::kEntrySuffix)),
                       api::verdict_of(outcomes[i]),
                       {}};
        note.entry.packed = false;
        report.notes.push_back(std::move(note));
      }
      report.left_out = std::move(listing.ignored);
      return report;
    } catch (const Error& error) {
      if (error.code() != ErrorCode::kFile) throw;
      problems += (problems.empty() ? "" : "; ") + std::string(error.what());
    }
  }
  base::fail(ErrorCode::kFile, "tuned results cannot be stored: {}",
             problems.empty() ? tuned::kNoFolder : problems);
}

TunedReport merge_tuned(const std::vector<std::string>& packs, const std::string& to) {
  if (packs.empty()) base::fail(ErrorCode::kInvalidArgument, "there is no pack to merge");
  base::FileSystem files;
  tuned::Listing listing = tuned::read_packs(files, packs);
  const std::size_t found = listing.entries.size();
  return api::write_listed(files, to, std::move(listing), found);
}

TunedReport diff_tuned(const std::string& first, const std::string& second) {
  base::FileSystem files;
  const tuned::Listing lists[] = {api::list_source(files, first), api::list_source(files, second)};
  TunedReport report;
  tuned::Pack packs[2];
  for (int i = 0; i < 2; ++i) {
    packs[i] = api::pack_of(lists[i].entries);
    report.left_out.insert(report.left_out.end(), lists[i].ignored.begin(), lists[i].ignored.end());
  }
  auto a = packs[0].begin(), b = packs[1].begin();
  const auto note = [&](const tuned::PackedEntry& packed, const std::string& source,
                        TunedVerdict verdict, std::string text) {
    report.notes.push_back({api::tell_packed(packed, source), verdict, std::move(text)});
  };
  while (a != packs[0].end() || b != packs[1].end()) {
    const auto order = a == packs[0].end()   ? std::strong_ordering::greater
                       : b == packs[1].end() ? std::strong_ordering::less
                                             : tuned::compare_keys(*a, *b);
    if (order < 0) {
      note(*a++, first, TunedVerdict::kFirstOnly, {});
    } else if (order > 0) {
      note(*b++, second, TunedVerdict::kSecondOnly, {});
    } else {
      if (*a != *b) {
        note(*b, second, TunedVerdict::kDiffers,
             api::differences(api::tell_packed(*a, first), api::tell_packed(*b, second)));
      }
      ++a;
      ++b;
    }
  }
  return report;
}

TunedReport prune_tuned(const std::optional<std::string>& tuned_path,
                        const std::optional<std::string>& device_key, bool dry_run) {
  base::FileSystem files;
  tuned::Listing listing = api::list_path(files, tuned_path, tuned::Crowded::kListed);
  TunedReport report;
  const auto remove = [&](TunedEntry entry, std::string why, const base::Digest& contents) {
    TunedNote note{std::move(entry), TunedVerdict::kRemoved, std::move(why)};
    try {
      if (!dry_run) tuned::remove_file(files, note.entry.path, contents);
    } catch (const Error& error) {
      note.verdict = TunedVerdict::kKept;
      note.text = error.what();
    }
    report.notes.push_back(std::move(note));
  };
  for (const tuned::Stray& stray : listing.strays) {
    if (!stray.useless) continue;  // it stays among the left-out files
    TunedEntry none;
    none.path = stray.path;
    remove(std::move(none), stray.why, stray.contents);
    std::erase(listing.ignored, stray.path + ": " + stray.why);
  }
  for (tuned::ListedEntry& listed : listing.entries) {
    if (listed.packed) continue;
    std::string why = tuned::why_outdated(listed.entry);
    if (!why.empty() && tuned::is_of_newer_kernels(listed.entry)) continue;
    if (why.empty() && device_key && !tuned::are_relatives(listed.device, *device_key)) {
      why = tuned::why_other(listed.device, *device_key);
    }
    const base::Digest contents = listed.contents;
    if (!why.empty()) remove(api::tell(std::move(listed)), std::move(why), contents);
  }
  for (const std::string& folder : listing.journaled) {
    try {
      for (tuned::StaleJournal& journal : tuned::remove_stale_journals(files, folder, dry_run)) {
        TunedEntry none;
        none.path = std::move(journal.path);
        const bool removed = journal.problem.empty();
        report.notes.push_back({std::move(none),
                                removed ? TunedVerdict::kRemoved : TunedVerdict::kKept,
                                std::move(removed ? journal.why : journal.problem)});
      }
    } catch (const Error& error) {
      listing.ignored.push_back(error.what());
    }
  }
  report.left_out = std::move(listing.ignored);
  return report;
}

TunedReport remove_tuned(const std::string& name, const std::optional<std::string>& tuned_path,
                         bool dry_run) {
  base::FileSystem files;
  tuned::Listing listing = api::list_path(files, tuned_path, tuned::Crowded::kListed);
  TunedFilter filter;
  filter.name = name;
  std::erase_if(listing.entries, [&](const auto& each) { return !api::is_meant(each, filter); });
  if (name.empty() || listing.entries.size() != 1) {
    base::fail(ErrorCode::kInvalidArgument,
               "{} tuned results have '{}' in their name or path; "
               "give more of the name of the one that is meant",
               listing.entries.size(), name);
  }
  const base::Digest contents = listing.entries.front().contents;
  TunedEntry entry = api::tell(std::move(listing.entries.front()));
  if (entry.packed) {
    base::fail(ErrorCode::kInvalidArgument,
               "the result '{}' is in the pack '{}', which has one digest over all its lines; "
               "export the results that you keep to a new pack",
               entry.name, entry.path);
  }
  if (!dry_run) tuned::remove_file(files, entry.path, contents);
  TunedReport report;
  report.notes.push_back({std::move(entry), TunedVerdict::kRemoved, {}});
  return report;
}

}  // namespace v0
}  // namespace annulus
