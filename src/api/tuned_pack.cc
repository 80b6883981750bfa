// Packs of tuned results, and what else people do with results. Measuring them again is in tune.cc.
#include "annulus/tuned_pack.h"

#include <algorithm>
#include <compare>
#include <tuple>
#include <utility>

#include "api/impl.h"
#include "api/measure_again.h"
#include "api/tuned_places.h"
#include "api/tuned_text.h"
#include "api/verify_until.h"
#include "autotune/batch_key.h"
#include "autotune/device_key.h"
#include "autotune/folder_work.h"
#include "autotune/listing.h"
#include "autotune/opened.h"
#include "autotune/tuned_pack.h"
#include "base/env.h"
#include "base/fail.h"
#include "base/random.h"
#include "batch/batch_choice.h"
#include "planner/choices.h"
#include "planner/tuned_batch.h"
#include "selection/selection_plan.h"

namespace annulus {
namespace api {
namespace {

using autotune::ListedEntry;
using autotune::Listing;

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != text.npos;
}

bool is_meant(const ListedEntry& listed, const TunedFilter& filter) {
  if (!contains(listed.name, filter.name) && !contains(listed.path, filter.name)) return false;
  if (!contains(listed.device, filter.device)) return false;
  if (filter.measured_only && listed.entry.predicted) return false;
  return listed.entry.complete || !filter.complete_only;
}

// The listing of a search path, without what was installed.
Listing list_path(base::FileSystem& files, const std::optional<std::string>& tuned_path,
                  autotune::Crowded crowded = autotune::Crowded::kIgnored) {
  return autotune::list_entries(files, tuned_places(tuned_path, base::read_environment()).folders,
                                crowded);
}

autotune::Pack pack_of(const std::vector<ListedEntry>& entries) {
  std::vector<autotune::PackedEntry> packed;
  for (const ListedEntry& listed : entries) packed.push_back({listed.device, listed.entry});
  return autotune::merged(std::move(packed));
}

TunedEntry tell_packed(const autotune::PackedEntry& packed, const std::string& path) {
  return tell({path, autotune::entry_name(packed.entry), packed.device, packed.entry, true, {}});
}

// The verdict on an entry that was brought in has its outcome's number.
constexpr TunedVerdict verdict_of(autotune::BroughtIn outcome) {
  return static_cast<TunedVerdict>(outcome);
}
static_assert(verdict_of(autotune::BroughtIn::kAdded) == TunedVerdict::kAdded);
static_assert(verdict_of(autotune::BroughtIn::kReplaced) == TunedVerdict::kReplaced);
static_assert(verdict_of(autotune::BroughtIn::kKept) == TunedVerdict::kKept);

// A report of what a pack holds now.
TunedReport report_of(const autotune::Pack& pack, const std::string& path, Listing from) {
  TunedReport report;
  for (const autotune::PackedEntry& packed : pack) {
    report.notes.push_back({tell_packed(packed, path), TunedVerdict::kAdded, {}});
  }
  report.left_out = std::move(from.ignored);
  return report;
}

// What a path names: one pack, wherever it is, or a search path.
Listing list_source(base::FileSystem& files, const std::string& source) {
  if (autotune::is_pack(source) && !contains(source, ":")) {
    return autotune::read_packs(files, {source});
  }
  return autotune::list_entries(files, autotune::split_path(source));
}

// In what two entries for the same problems and kernels differ: "config mma ..., then mma ...".
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

// Whether a device uses entries such as this one, whatever goes before it.
TunedNote judge(const Device::Impl& device, const ListedEntry& listed) {
  TunedNote note{tell(listed), TunedVerdict::kUnused, {}};
  const std::string& key = device.info.tuned_key;
  const bool relative = autotune::are_relatives(listed.device, key);
  note.text = relative ? "" : autotune::why_other(listed.device, key);
  if (note.text.empty()) note.text = device.tuned->why_not(listed.entry);
  if (!note.text.empty()) return note;
  note.verdict = TunedVerdict::kUsed;
  if (relative) {
    note.text = fmt::format(
        "where there is no result of this device, and the model does not call "
        "it slower: it was found on {}",
        autotune::name_in(listed.device));
  }
  return note;
}

// Indices of `wanted` entries, spread over all: drawn without repetition.
std::vector<std::size_t> sample(std::vector<std::size_t> from, std::int64_t wanted,
                                std::uint64_t seed) {
  base::Random random(seed + 1);
  std::vector<std::size_t> taken;
  while (!from.empty() && static_cast<std::int64_t>(taken.size()) < wanted) {
    const std::size_t at = random.below(static_cast<std::uint32_t>(from.size()));
    taken.push_back(from[at]);
    from.erase(from.begin() + static_cast<std::ptrdiff_t>(at));
  }
  std::ranges::sort(taken);
  return taken;
}

std::vector<std::string> places_of(const Device::Impl& device) {
  std::vector<std::string> places = device.tuned->options().folders;
  const std::vector<std::string>& shipped = device.tuned->options().shipped;
  places.insert(places.end(), shipped.begin(), shipped.end());
  return places;
}

// Why an entry that serves the device does not serve this problem, and how far it is.
std::string why_passed(const ListedEntry& listed, const autotune::ShapeKey& shape,
                       const std::optional<autotune::TunedStore::Found>& used) {
  if (const std::string why = autotune::why_other_kind(listed.entry.shape, shape); !why.empty()) {
    return "it is for other problems: " + why;
  }
  const int distance = *autotune::length_distance(listed.entry.shape, shape);
  if (distance > autotune::kMaxDistance) {
    return fmt::format("its lengths are {} half powers of two away, more than {}", distance,
                       autotune::kMaxDistance);
  }
  if (used && used->distance < distance) {
    return fmt::format("its lengths are {} half powers of two away, and others nearer", distance);
  }
  if (used && used->distance == distance && distance > 0) {
    return "its lengths are as far away as those of the one that is used";
  }
  return "one for the same problems goes before it: of this device, of an earlier place of the "
         "path, of a finished search, of this driver, or with a surer gain";
}

// The order in which people want to read of entries: nearest first.
auto nearness(const ListedEntry& listed, const autotune::ShapeKey& shape, bool serves) {
  const auto distance = autotune::length_distance(listed.entry.shape, shape);
  return std::tuple(!serves, !distance.has_value(), distance.value_or(0));
}

}  // namespace

namespace {

// What a plan looks up, and what comes of it.
struct LookUp {
  autotune::ShapeKey shape;
  std::optional<autotune::TunedStore::Found> found;
  bool used = false;  // a plan takes what was found
  std::string text;   // why, or why not
};

// Whether an entry is the one that was found.
bool is_found(const LookUp& look_up, const ListedEntry& listed) {
  const auto& found = look_up.found;
  return found && found->path == listed.path && found->entry == listed.entry;
}

// The look-up that an entry is held against: one of its class of requests, else the first.
const LookUp& look_up_for(const std::vector<LookUp>& look_ups, const ListedEntry& listed) {
  const auto same = std::ranges::find_if(look_ups, [&](const LookUp& each) {
    return each.shape.requests == listed.entry.shape.requests;
  });
  return same == look_ups.end() ? look_ups.front() : *same;
}

// Adds a note for each entry of the device's path, those first that come nearest to a look-up.
void tell_entries(const Device::Impl& device, const std::vector<LookUp>& look_ups,
                  TunedReport* report) {
  base::FileSystem files;
  autotune::Listing listing = autotune::list_entries(files, places_of(device));
  std::vector<std::pair<TunedNote, ListedEntry>> judged;
  for (ListedEntry& listed : listing.entries) {
    TunedNote note = judge(device, listed);
    judged.emplace_back(std::move(note), std::move(listed));
  }
  const auto serves = [](const TunedNote& note) { return note.verdict == TunedVerdict::kUsed; };
  const auto order = [&](const auto& each) {
    const auto& [note, listed] = each;
    return nearness(listed, look_up_for(look_ups, listed).shape, serves(note));
  };
  std::ranges::stable_sort(judged,
                           [&](const auto& a, const auto& b) { return order(a) < order(b); });
  for (auto& [note, listed] : judged) {
    const LookUp& look_up = look_up_for(look_ups, listed);
    if (is_found(look_up, listed)) {
      note.verdict = look_up.used ? TunedVerdict::kUsed : TunedVerdict::kUnused;
      note.text = look_up.text;
    } else if (serves(note)) {
      note.verdict = TunedVerdict::kUnused;
      note.text = why_passed(listed, look_up.shape, look_up.found);
    }
    report->notes.push_back(std::move(note));
  }
  report->left_out = std::move(listing.ignored);
}

// Requires: the subject is valid.
TunedReport why_subject(const Device::Impl& device, const planner::Subject& subject) {
  TunedReport report;
  const planner::Choices choices = planner::choose(subject, limits_of(device), {}, *device.tuned);
  const attention::Choice& choice = choices.tuned ? choices.tuned->choice : choices.untuned;
  report.config = attention::to_string(choice.config);
  report.reason = choice.reason;
  if (subject.problem.batch == 0 || subject.problem.seq_q == 0) {
    report.reason += "; no result is looked up where there is nothing to launch";
    return report;
  }
  LookUp look_up{planner::key_of(subject), {}, choices.tuned.has_value(), choice.reason};
  look_up.found = device.tuned->find(look_up.shape);
  report.shape = autotune::to_string(look_up.shape);
  tell_entries(device, {look_up}, &report);
  return report;
}

}  // namespace

TunedReport verify_until(const Device& device, const TunedVerifyOptions& options,
                         const std::function<bool()>& cancelled) {
  if (options.measure < 0) {
    base::fail(ErrorCode::kInvalidArgument, "measure is {}; give 0, for none, or more",
               options.measure);
  }
  const Device::Impl& impl = inside(device);
  base::FileSystem files;
  autotune::Listing listing = options.packs.empty() ? autotune::list_entries(files, places_of(impl))
                                                    : autotune::read_packs(files, options.packs);
  TunedReport report;
  std::vector<std::size_t> serving;
  for (std::size_t i = 0; i < listing.entries.size(); ++i) {
    report.notes.push_back(judge(impl, listing.entries[i]));
    if (report.notes.back().verdict == TunedVerdict::kUsed) serving.push_back(i);
  }
  report.left_out = std::move(listing.ignored);
  for (const std::size_t at : sample(std::move(serving), options.measure, options.seed)) {
    if (cancelled()) break;
    try {
      TunedNote measured =
          measure_again(device, listing.entries[at].entry, options.seed, cancelled);
      report.notes[at].verdict = measured.verdict;
      report.notes[at].text = std::move(measured.text);
    } catch (const Error& error) {
      if (error.code() != ErrorCode::kCancelled) throw;
      break;
    }
    if (options.progress) options.progress(report.notes[at]);
  }
  return report;
}

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
  autotune::Listing listing = api::list_path(files, tuned_path);
  std::erase_if(listing.entries, [&](const auto& each) { return !api::is_meant(each, filter); });
  const autotune::Pack made = api::pack_of(listing.entries);
  autotune::write_pack(files, pack, made);
  return api::report_of(made, pack, std::move(listing));
}

TunedReport import_tuned(const std::vector<std::string>& packs, const TunedFilter& filter,
                         const std::optional<std::string>& tuned_path) {
  base::FileSystem files;
  autotune::Listing listing = autotune::read_packs(files, packs);
  std::erase_if(listing.entries, [&](const auto& each) { return !api::is_meant(each, filter); });
  const autotune::Pack pack = api::pack_of(listing.entries);
  std::string problems;
  for (const std::string& folder :
       api::tuned_places(tuned_path, base::read_environment()).folders) {
    if (autotune::is_pack(folder)) continue;
    try {
      const std::vector<autotune::BroughtIn> outcomes = autotune::bring_in(files, folder, pack);
      TunedReport report;
      for (std::size_t i = 0; i < pack.size(); ++i) {
        TunedNote note{
            api::tell_packed(pack[i], folder + "/" + autotune::folder_for(pack[i].device) + "/" +
                                          autotune::entry_name(pack[i].entry) +
                                          std::string(autotune::kEntrySuffix)),
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
  base::fail(ErrorCode::kFile, "tuned results cannot be kept: {}",
             problems.empty() ? autotune::kNoFolder : problems);
}

TunedReport merge_tuned(const std::vector<std::string>& packs, const std::string& to) {
  if (packs.empty()) base::fail(ErrorCode::kInvalidArgument, "there is no pack to merge");
  base::FileSystem files;
  autotune::Listing listing = autotune::read_packs(files, packs);
  const autotune::Pack made = api::pack_of(listing.entries);
  autotune::write_pack(files, to, made);
  return api::report_of(made, to, std::move(listing));
}

TunedReport diff_tuned(const std::string& first, const std::string& second) {
  base::FileSystem files;
  const autotune::Listing lists[] = {api::list_source(files, first),
                                     api::list_source(files, second)};
  TunedReport report;
  autotune::Pack packs[2];
  for (int i = 0; i < 2; ++i) {
    packs[i] = api::pack_of(lists[i].entries);
    report.left_out.insert(report.left_out.end(), lists[i].ignored.begin(), lists[i].ignored.end());
  }
  auto a = packs[0].begin(), b = packs[1].begin();
  const auto note = [&](const autotune::PackedEntry& packed, const std::string& source,
                        TunedVerdict verdict, std::string text) {
    report.notes.push_back({api::tell_packed(packed, source), verdict, std::move(text)});
  };
  while (a != packs[0].end() || b != packs[1].end()) {
    const auto order = a == packs[0].end()   ? std::strong_ordering::greater
                       : b == packs[1].end() ? std::strong_ordering::less
                                             : autotune::compare_keys(*a, *b);
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

TunedReport verify_tuned(const Device& device, const TunedVerifyOptions& options) {
  return api::verify_until(device, options,
                           [&] { return options.cancel != nullptr && options.cancel->load(); });
}

TunedReport prune_tuned(const std::optional<std::string>& tuned_path,
                        const std::optional<std::string>& device_key, bool dry_run) {
  base::FileSystem files;
  autotune::Listing listing = api::list_path(files, tuned_path, autotune::Crowded::kListed);
  TunedReport report;
  const auto remove = [&](TunedEntry entry, std::string why, const base::Digest& contents) {
    TunedNote note{std::move(entry), TunedVerdict::kRemoved, std::move(why)};
    try {
      if (!dry_run) autotune::remove_file(files, note.entry.path, contents);
    } catch (const Error& error) {
      note.verdict = TunedVerdict::kKept;
      note.text = error.what();
    }
    report.notes.push_back(std::move(note));
  };
  for (const autotune::Stray& stray : listing.strays) {
    if (!stray.useless) continue;  // stays among what is left out
    TunedEntry none;
    none.path = stray.path;
    remove(std::move(none), stray.why, stray.contents);
    std::erase(listing.ignored, stray.path + ": " + stray.why);
  }
  for (autotune::ListedEntry& listed : listing.entries) {
    if (listed.packed) continue;
    std::string why = autotune::why_outdated(listed.entry);
    if (!why.empty() && autotune::is_of_newer_kernels(listed.entry)) continue;
    if (why.empty() && device_key && !autotune::are_relatives(listed.device, *device_key)) {
      why = autotune::why_other(listed.device, *device_key);
    }
    const base::Digest contents = listed.contents;
    if (!why.empty()) remove(api::tell(std::move(listed)), std::move(why), contents);
  }
  for (const std::string& folder : listing.journaled) {
    try {
      for (autotune::StaleJournal& journal :
           autotune::remove_stale_journals(files, folder, dry_run)) {
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
  autotune::Listing listing = api::list_path(files, tuned_path, autotune::Crowded::kListed);
  TunedFilter filter;
  filter.name = name;
  std::erase_if(listing.entries, [&](const auto& each) { return !api::is_meant(each, filter); });
  if (name.empty() || listing.entries.size() != 1) {
    base::fail(ErrorCode::kInvalidArgument,
               "{} tuned results have '{}' in their name or path; "
               "give more of the name of one",
               listing.entries.size(), name);
  }
  const base::Digest contents = listing.entries.front().contents;
  TunedEntry entry = api::tell(std::move(listing.entries.front()));
  if (entry.packed) {
    base::fail(ErrorCode::kInvalidArgument,
               "the result '{}' is in the pack '{}', which has one digest over all its lines; "
               "export what it shall hold to a new one",
               entry.name, entry.path);
  }
  if (!dry_run) autotune::remove_file(files, entry.path, contents);
  TunedReport report;
  report.notes.push_back({std::move(entry), TunedVerdict::kRemoved, {}});
  return report;
}

TunedReport why_tuned(const Device& device, const Problem& problem) {
  validate(problem);
  return api::why_subject(api::inside(device), {problem});
}

TunedReport why_tuned(const Device& device, const Problem& problem, const Selection& selection) {
  validate(problem);
  selection::validate(problem, selection);
  return api::why_subject(api::inside(device), {problem, &selection});
}

TunedReport why_tuned(const Device& device, const BatchProblem& problem,
                      const BatchOptions& options) {
  validate(problem);
  const Device::Impl& impl = api::inside(device);
  const attention::DeviceLimits limits = api::limits_of(impl);
  const auto named = batch::named_configs(options.config, {problem.dim_qk, problem.dim_v});
  std::vector<api::LookUp> look_ups;
  TunedReport report;
  const auto append = [](std::string* to, const char* between, const std::string& text) {
    if (!to->empty()) *to += between;
    *to += text;
  };
  for (planner::TunedClass& of : planner::tuned_classes(problem, options, limits, *impl.tuned)) {
    api::LookUp look_up{autotune::shape_key(problem, of.requests), std::move(of.found), {}, {}};
    look_up.used = look_up.found && of.why_unused.empty();
    const auto by_name = batch::named_for(of.requests, named, problem, limits);
    const attention::KernelConfig config = look_up.used ? look_up.found->entry.config
                                           : by_name
                                               ? *by_name
                                               : batch::choose_config(of.requests, problem, limits);
    look_up.text = look_up.used            ? planner::tuned_reason(*look_up.found)
                   : of.why_unused.empty() ? "the heuristic's choice"
                                           : of.why_unused;
    append(&report.shape, "; ", autotune::to_string(look_up.shape));
    append(&report.config, ", ", attention::to_string(config));
    append(&report.reason, "; ", look_up.text);
    look_ups.push_back(std::move(look_up));
  }
  api::tell_entries(impl, look_ups, &report);
  return report;
}

}  // namespace v0
}  // namespace annulus
