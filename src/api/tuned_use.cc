// How a device uses tuned results: which it uses, and why it does not use the others. Measuring
// them again is in tune.cc.
#include <algorithm>
#include <tuple>
#include <utility>

#include "annulus/tune.h"
#include "api/impl.h"
#include "api/measure_again.h"
#include "api/tuned_text.h"
#include "api/verify_until.h"
#include "base/fail.h"
#include "base/random.h"
#include "batch/batch_choice.h"
#include "batch/batch_plan.h"
#include "planner/choices.h"
#include "planner/tuned_batch.h"
#include "selection/selection_plan.h"
#include "tuned/batch_key.h"
#include "tuned/device_key.h"
#include "tuned/listing.h"

namespace annulus {
namespace api {
namespace {

using tuned::ListedEntry;

// Whether a device uses entries such as this one, if no other entry is preferred.
TunedNote judge(const Device::Impl& device, const ListedEntry& listed) {
  TunedNote note{tell(listed), TunedVerdict::kUnused, {}};
  const std::string& key = device.info.tuned_key;
  const bool relative = tuned::are_relatives(listed.device, key);
  note.text = relative ? "" : tuned::why_other(listed.device, key);
  if (note.text.empty()) note.text = device.tuned->why_not(listed.entry);
  if (!note.text.empty()) return note;
  note.verdict = TunedVerdict::kUsed;
  if (relative) {
    note.text = fmt::format(
        "if there is no result of this device, and the model does not call "
        "it slower: it was found on {}",
        tuned::name_in(listed.device));
  }
  return note;
}

// Draws `wanted` indices of entries at random, without repetition.
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

// Why an entry that the device can use is not used for this problem, and how far away its lengths
// are.
std::string why_passed(const ListedEntry& listed, const tuned::ShapeKey& shape,
                       const std::optional<tuned::TunedStore::Found>& used) {
  if (const std::string why = tuned::why_other_kind(listed.entry.shape, shape); !why.empty()) {
    return "it is for other problems: " + why;
  }
  const int distance = *tuned::length_distance(listed.entry.shape, shape);
  if (distance > tuned::kMaxDistance) {
    return fmt::format("its lengths are {} half powers of two away, more than {}", distance,
                       tuned::kMaxDistance);
  }
  if (used && used->distance < distance) {
    return fmt::format("its lengths are {} half powers of two away, and other results are nearer",
                       distance);
  }
  if (used && used->distance == distance && distance > 0) {
    return "its lengths are as far away as the lengths of the result that is used";
  }
  return "a result for the same problems is preferred: of this device, of an earlier place of the "
         "path, of a finished search, of this driver, or with a surer gain";
}

// The order in which entries are reported: the nearest come first.
auto nearness(const ListedEntry& listed, const tuned::ShapeKey& shape, bool serves) {
  const auto distance = tuned::length_distance(listed.entry.shape, shape);
  return std::tuple(!serves, !distance.has_value(), distance.value_or(0));
}

// A look-up of a plan, and its result.
struct LookUp {
  tuned::ShapeKey shape;
  std::optional<tuned::TunedStore::Found> found;
  bool used = false;  // a plan uses the entry that was found
  std::string text;   // why, or why not
};

// Whether an entry is the one that the look-up found.
bool is_found(const LookUp& look_up, const ListedEntry& listed) {
  const auto& found = look_up.found;
  return found && found->path == listed.path && found->entry == listed.entry;
}

// The look-up with which an entry is compared: one for its class of requests, else the first.
const LookUp& look_up_for(const std::vector<LookUp>& look_ups, const ListedEntry& listed) {
  const auto same = std::ranges::find_if(look_ups, [&](const LookUp& each) {
    return each.shape.requests == listed.entry.shape.requests;
  });
  return same == look_ups.end() ? look_ups.front() : *same;
}

// Adds a note for each entry of the device's path, the nearest to a look-up first.
void tell_entries(const Device::Impl& device, const std::vector<LookUp>& look_ups,
                  TunedReport* report) {
  base::FileSystem files;
  tuned::Listing listing = tuned::list_entries(files, places_of(device));
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
    report.reason += "; no result is looked up if there is nothing to launch";
    return report;
  }
  LookUp look_up{planner::key_of(subject), {}, choices.tuned.has_value(), choice.reason};
  look_up.found = device.tuned->find(look_up.shape);
  report.shape = tuned::to_string(look_up.shape);
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
  tuned::Listing listing = options.packs.empty() ? tuned::list_entries(files, places_of(impl))
                                                 : tuned::read_packs(files, options.packs);
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

TunedReport verify_tuned(const Device& device, const TunedVerifyOptions& options) {
  return api::verify_until(device, options,
                           [&] { return options.cancel != nullptr && options.cancel->load(); });
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
  batch::check_options(options);
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
    api::LookUp look_up{tuned::shape_key(problem, of.requests), std::move(of.found), {}, {}};
    look_up.used = look_up.found && of.why_unused.empty();
    const auto by_name = batch::named_for(of.requests, named, problem, limits);
    attention::KernelConfig config;
    if (look_up.used) {
      config = look_up.found->entry.config;
      look_up.text = planner::tuned_reason(*look_up.found);
    } else {
      look_up.text = of.why_unused.empty() ? "the heuristic's choice" : of.why_unused;
      if (by_name) {
        config = *by_name;
      } else {
        const batch::ClassChoice choice = batch::choose_config(of.requests, problem, limits);
        config = choice.config;
        if (!choice.withheld.empty()) look_up.text += "; " + choice.withheld;
      }
    }
    append(&report.shape, "; ", tuned::to_string(look_up.shape));
    append(&report.config, ", ", attention::to_string(config));
    append(&report.reason, "; ", look_up.text);
    look_ups.push_back(std::move(look_up));
  }
  api::tell_entries(impl, look_ups, &report);
  return report;
}

}  // namespace v0
}  // namespace annulus
