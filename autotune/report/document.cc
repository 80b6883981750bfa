#include "autotune/report/document.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "attention/kernels/config_family.h"
#include "autotune/replay.h"
#include "autotune/report/story.h"
#include "base/json.h"
#include "tuned/listing.h"

namespace annulus::autotune::report {
namespace {

using attention::KernelConfig;
using base::Json;

std::string dumped(const Json& json) {
  return json.dump(-1, ' ', /*ensure_ascii=*/true, Json::error_handler_t::replace);
}

// JSON has no infinity.
Json number(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }

Json json_of(const tuned::Interval& ratio) {
  return Json::array({number(ratio.low), number(ratio.middle), number(ratio.high)});
}

// The numbers of a configuration of any family, by name.
std::vector<std::pair<std::string, int>> parameters_of(const KernelConfig& config) {
  const attention::CtaShape cta = attention::cta_shape(config);
  std::vector<std::pair<std::string, int>> all = {{"tile rows", config.tile_rows},
                                                  {"tile columns", config.tile_columns},
                                                  {"warps", cta.warps},
                                                  {"stages", cta.stages},
                                                  {"resident CTAs", cta.resident}};
  // Some families have these numbers as fields too.
  for (std::size_t i = 0; i < config.family->fields.size(); ++i) {
    std::string name = config.family->fields[i].name;
    std::ranges::replace(name, '_', ' ');
    if (name == "resident") continue;
    const auto same = [&](const auto& each) { return each.first == name; };
    if (std::ranges::none_of(all, same)) all.emplace_back(std::move(name), config.own[i]);
  }
  return all;
}

const char* name_of(tuned::Trial::Outcome outcome) {
  switch (outcome) {
    case tuned::Trial::Outcome::kNotTried:
      return "not tried";
    case tuned::Trial::Outcome::kDropped:
      return "dropped";
    case tuned::Trial::Outcome::kTried:
      break;
  }
  return "tried";
}

Json json_of(const tuned::Trial& trial, Json* families) {
  const std::string family = trial.config.family->name;
  Json parameters = Json::array();
  const auto all = parameters_of(trial.config);
  for (const auto& [name, value] : all) parameters.push_back(value);
  if (!families->contains(family)) {
    for (const auto& [name, value] : all) (*families)[family].push_back(name);
  }
  Json json = {{"configuration", to_string(trial.config)},
               {"family", family},
               {"parameters", std::move(parameters)},
               {"predicted_cycles", number(trial.predicted)},
               {"outcome", name_of(trial.outcome)}};
  if (trial.outcome == tuned::Trial::Outcome::kDropped) json["reason"] = trial.reason;
  if (trial.outcome == tuned::Trial::Outcome::kTried) {
    json["time"] = number(trial.time);
    json["ratio"] = json_of(trial.ratio);
    json["rounds"] = trial.rounds;
  }
  if (trial.other_ratio) json["other_ratio"] = json_of(*trial.other_ratio);
  return json;
}

Json decision_of(const Story& story) {
  const SearchResult& result = *story.result;
  Json json = {{"complete", result.complete},
               {"tried", result.tried},
               {"dropped", result.dropped},
               {"winner", result.winner},
               {"default", result.default_at},
               {"runner_up", result.runner_up ? Json(*result.runner_up) : Json(nullptr)},
               {"winner_time", number(result.winner_time)},
               {"default_time", number(result.default_time)},
               {"finalists", story.finalists()}};
  Json families = Json::object(), trials = Json::array(), order = Json::array();
  for (const tuned::Trial& trial : result.trials) trials.push_back(json_of(trial, &families));
  for (const Step& step : story.steps) {
    Json each = {{"trial", step.trial}};
    if (!step.dropped) each["ratio"] = number(step.ratio);
    each["best"] = number(step.best);
    order.push_back(std::move(each));
  }
  json["families"] = std::move(families);
  json["trials"] = std::move(trials);
  json["order"] = std::move(order);
  return json;
}

Json json_of(const tuned::ListedEntry& listed) {
  const tuned::Entry& entry = listed.entry;
  const double unit = entry.predicted ? 1.0 : 1e3;  // converts nanoseconds to microseconds
  const double ratio = static_cast<double>(entry.time) /
                       static_cast<double>(std::max<std::int64_t>(1, entry.default_time));
  return {{"path", listed.path},
          {"device", listed.device},
          {"shape", to_string(entry.shape)},
          {"configuration", to_string(entry.config)},
          {"default_configuration", to_string(entry.default_config)},
          {"predicted", entry.predicted},
          {"complete", entry.complete},
          {"time", static_cast<double>(entry.time) / unit},
          {"default_time", static_cast<double>(entry.default_time) / unit},
          {"ratio", json_of(tuned::Interval{static_cast<double>(entry.ratio_low_ppm) / 1e6, ratio,
                                            static_cast<double>(entry.ratio_high_ppm) / 1e6})},
          {"rounds", entry.rounds},
          {"candidates", entry.candidates},
          {"library", entry.origin.library_version},
          {"driver", entry.origin.driver_version},
          {"nvrtc", entry.origin.nvrtc_version},
          {"clock_mhz", entry.origin.clock_mhz},
          {"memory_clock_mhz", entry.origin.memory_clock_mhz},
          {"when", entry.origin.when},
          {"pattern", entry.origin.pattern}};
}

Json json_of(const Story& story, const tuned::ListedEntry* stored) {
  Json facts = Json::object();
  for (const auto& [name, text] : story.facts) facts[name] = text;
  Json json = {{"journal", story.path},     {"device", story.device},        {"shape", story.shape},
               {"facts", std::move(facts)}, {"predicted", story.predicted},  {"ended", story.ended},
               {"damaged", story.damaged},  {"candidates", story.candidates}};
  if (story.result) {
    json["decision"] = decision_of(story);
  } else {
    json["why_undecided"] = story.why_no_result;
  }
  if (stored != nullptr) json["stored"] = json_of(*stored);
  return json;
}

// The stored results, with an index by device and shape.
class Stored {
 public:
  explicit Stored(std::vector<tuned::ListedEntry> entries)
      : entries_(std::move(entries)), has_story_(entries_.size()) {
    for (std::size_t i = 0; i < entries_.size(); ++i) {
      places_[{entries_[i].device, to_string(entries_[i].entry.shape)}].push_back(i);
    }
  }

  // The last result with a story's device and shape, or null.
  const tuned::ListedEntry* last_of(const Story& story) const {
    const auto found = places_.find({story.device, story.shape});
    return found == places_.end() ? nullptr : &entries_[found->second.back()];
  }

  // Marks all results with the story's device and shape, so that others() does not return them.
  void take(const Story& story) {
    const auto found = places_.find({story.device, story.shape});
    if (found == places_.end()) return;
    for (const std::size_t place : found->second) has_story_[place] = true;
  }

  // The results that belong to no story.
  std::vector<const tuned::ListedEntry*> others() const {
    std::vector<const tuned::ListedEntry*> all;
    for (std::size_t i = 0; i < entries_.size(); ++i) {
      if (!has_story_[i]) all.push_back(&entries_[i]);
    }
    return all;
  }

 private:
  std::vector<tuned::ListedEntry> entries_;
  std::vector<bool> has_story_;
  std::map<std::pair<std::string, std::string>, std::vector<std::size_t>> places_;
};

// Writes a document, search by search.
class Writer {
 public:
  Writer(base::FileSystem& files, std::vector<std::string> left_out, const DocumentLimits& limits)
      : files_(files), limits_(limits), work_left_(limits.work) {
    document_.left_out = std::move(left_out);
    document_.json = fmt::format("{{\"schema\":{},\n\"searches\":[", kDocumentSchema);
  }

  void add_journals(const std::vector<FoundJournal>& journals, Stored* stored) {
    for (const FoundJournal& journal : journals) {
      std::string why = why_full();
      try {
        if (why.empty()) why = add(journal.path, stored);
        if (!why.empty()) document_.left_out.push_back(fmt::format("'{}': {}", journal.path, why));
      } catch (const Error& error) {
        if (journal.named || error.code() == ErrorCode::kOutOfMemory) throw;
        document_.left_out.emplace_back(error.what());
      }
    }
  }

  void add_entries(const std::vector<const tuned::ListedEntry*>& entries) {
    document_.json += "],\n\"results\":[";
    for (const tuned::ListedEntry* listed : entries) {
      const auto before = static_cast<std::size_t>(document_.entries);
      if (before == limits_.entries || !append(dumped(json_of(*listed)), before == 0)) {
        document_.left_out.push_back(fmt::format("{} of {} results without a journal",
                                                 entries.size() - before, entries.size()));
        break;
      }
      ++document_.entries;
    }
    document_.json += "],\n";
  }

  Document take() {
    append_left_out();
    document_.json += "}\n";
    return std::move(document_);
  }

 private:
  // The reason why no further search can be added. Empty if one can.
  std::string why_full() const {
    if (static_cast<std::size_t>(document_.searches) == limits_.searches) {
      return fmt::format("a report has at most {} searches", limits_.searches);
    }
    return work_left_ == 0 ? kTooLong : "";
  }

  // Adds a search, or returns the reason why it was not added.
  std::string add(const std::string& path, Stored* stored) {
    const std::string text = read_text(path);
    if (!spend(std::ssize(text))) {
      work_left_ = 0;
      return kTooLong;
    }
    const tuned::Journal journal = journal_of(path, text);
    if (!spend(replay_steps(journal))) return kTooLong;
    const Story story = story_of(path, journal, text);
    if (!append(dumped(json_of(story, stored->last_of(story))), document_.searches == 0)) {
      return fmt::format("a report has at most {} bytes, and no room for this search",
                         limits_.bytes);
    }
    stored->take(story);
    ++document_.searches;
    return {};
  }

  // Appends an array element on its own line if there is room for it.
  bool append(const std::string& value, bool is_first) {
    // The space for the rest of the document, up to the list of what was left out.
    constexpr std::size_t kRest = 100;
    if (document_.json.size() + value.size() + kRest > limits_.bytes) return false;
    document_.json += (is_first ? "\n" : ",\n") + value;
    return true;
  }

  void append_left_out() {
    constexpr std::size_t kMaxLines = 200, kMaxBytes = 1 << 20;
    document_.json += "\"left_out\":[";
    std::size_t lines = 0, bytes = 0;
    for (const std::string& line : document_.left_out) {
      const std::string value = dumped(line);
      bytes += value.size() + 2;
      if (lines == kMaxLines || bytes > kMaxBytes - 100) break;
      document_.json += (lines++ == 0 ? "\n" : ",\n") + value;
    }
    document_.json += fmt::format("],\n\"further_left_out\":{}", document_.left_out.size() - lines);
  }

  std::string read_text(const std::string& path) {
    const std::vector<std::byte> bytes = base::read_file(files_, path, tuned::kMaxJournalBytes);
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }

  bool spend(std::int64_t steps) {
    if (steps > work_left_) return false;
    work_left_ -= steps;
    return true;
  }

  static constexpr const char* kTooLong = "a report of it and of the others would take too long";

  base::FileSystem& files_;
  const DocumentLimits limits_;
  std::int64_t work_left_;
  Document document_;
};

}  // namespace

Document document_of(base::FileSystem& files, Gathered gathered, const DocumentLimits& limits) {
  Writer writer(files, std::move(gathered.left_out), limits);
  Stored stored(std::move(gathered.entries));
  writer.add_journals(gathered.journals, &stored);
  writer.add_entries(stored.others());
  return writer.take();
}

}  // namespace annulus::autotune::report
