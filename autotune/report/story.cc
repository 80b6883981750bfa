#include "autotune/report/story.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "autotune/replay.h"
#include "base/fail.h"

namespace annulus::autotune::report {
namespace {

using base::Json;

// The members of a journal's subject that users want to read, and their formats.
std::string text_of(const Json& json) {
  return json.is_string() ? json.get<std::string>()
                          : json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

// Returns "13.0" for 13000.
std::string version_text(std::int64_t version) {
  return fmt::format("{}.{}", version / 1000, version % 1000 / 10);
}

// Returns "0.1.2" for 102.
std::string library_text(std::int64_t version) {
  return fmt::format("{}.{}.{}", version / 10000, version / 100 % 100, version % 100);
}

std::string version_in(const Json& json) {
  return json.is_number_integer() ? version_text(json.get<std::int64_t>()) : text_of(json);
}

std::string library_in(const Json& json) {
  return json.is_number_integer() ? library_text(json.get<std::int64_t>()) : text_of(json);
}

std::string flag_in(const Json& json) {
  if (!json.is_boolean()) return text_of(json);
  return json.get<bool>() ? "yes" : "no";
}

std::string revisions_in(const Json& json) {
  if (!json.is_object()) return text_of(json);
  std::string text;
  for (const auto& [name, revision] : json.items()) {
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", name, text_of(revision));
  }
  return text;
}

std::string sizes_in(const Json& json) {
  static constexpr const char* kNames[] = {"B", "H", "Hkv", "Sq", "Sk", "layer", "q0", "k0"};
  if (!json.is_array() || json.size() > std::size(kNames)) return text_of(json);
  std::string text;
  for (std::size_t i = 0; i < json.size(); ++i) {
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", kNames[i], text_of(json[i]));
  }
  return text;
}

std::string list_in(const Json& json) {
  if (!json.is_array()) return text_of(json);
  std::string text;
  for (const Json& each : json) text += (text.empty() ? "" : "; ") + text_of(each);
  return text.empty() ? "none" : text;
}

struct Fact {
  const char* member;
  const char* name;
  std::string (*text)(const Json& json);
};
constexpr Fact kFacts[] = {{"device", "device", text_of},
                           {"shape", "shape", text_of},
                           {"sizes", "problem that was measured", sizes_in},
                           {"pattern", "digest of the pattern", text_of},
                           {"library", "library", library_in},
                           {"driver", "driver", version_in},
                           {"nvrtc", "NVRTC", version_in},
                           {"families", "revisions of the kernels", revisions_in},
                           {"seed", "seed of the operands", text_of},
                           {"cold_cache", "L2 emptied before each launch", flag_in},
                           {"exhaustive", "whole space", flag_in},
                           {"nominated", "tried first, as the best of other problems", list_in}};

void read_facts(const Json& subject, Story* story) {
  for (const Fact& fact : kFacts) {
    const auto found = subject.find(fact.member);
    if (found != subject.end()) story->facts.emplace_back(fact.name, fact.text(*found));
  }
  const auto stated = [&](const char* member) {
    const auto found = subject.find(member);
    return found == subject.end() ? std::string("not stated") : text_of(*found);
  };
  story->device = stated("device");
  story->shape = stated("shape");
}

// Adds the facts about the measurements of the search.
void read_measurements(Story* story) {
  const SearchResult& result = *story->result;
  if (result.repeated > 0) {
    story->facts.emplace_back(
        "rounds repeated, as the device was slower than it can be",
        fmt::format("{}{}", result.repeated, result.slowed ? "; it stayed so" : ""));
  }
  if (const std::optional<tuned::Interval>& ratio = result.trials[result.winner].other_ratio) {
    story->facts.emplace_back(
        "the winner's time over the default's with L2 in its other state",
        fmt::format("{:.3f} ({:.3f} to {:.3f})", ratio->middle, ratio->low, ratio->high));
  }
}

void follow(const tuned::Journal& journal, Story* story) {
  std::map<std::string, std::size_t> places;
  for (std::size_t i = 0; i < journal.trials.size(); ++i) {
    places.emplace(to_string(journal.trials[i].config), i);
  }
  try {
    story->result = replay(journal, [&](const SearchProgress& at) {
      story->steps.push_back({places.at(to_string(at.last->config)),
                              at.last->outcome == tuned::Trial::Outcome::kDropped,
                              at.last->ratio.middle, at.best->ratio.middle});
    });
    read_measurements(story);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kUnsupported) throw;
    story->steps.clear();
    story->why_no_result = error.what();
  }
}

}  // namespace

std::vector<std::size_t> Story::finalists() const {
  std::vector<std::size_t> tried;
  bool measured_last = false;
  for (std::size_t i = 0; i < result->trials.size(); ++i) {
    const tuned::Trial& trial = result->trials[i];
    if (trial.outcome != tuned::Trial::Outcome::kTried || i == result->default_at) continue;
    tried.push_back(i);
    measured_last = measured_last || trial.other_ratio;
  }
  std::ranges::stable_sort(tried, {},
                           [&](std::size_t i) { return result->trials[i].ratio.middle; });
  if (measured_last) {
    std::erase_if(tried, [&](std::size_t i) { return !result->trials[i].other_ratio; });
    return tried;
  }
  constexpr std::size_t kMost = 5;
  const auto kept = std::min(tried.size(), kMost);
  const auto winner = std::ranges::find(tried, result->winner);
  if (winner != tried.end() && winner - tried.begin() >= static_cast<std::ptrdiff_t>(kept)) {
    tried[kept - 1] = result->winner;
  }
  tried.resize(kept);
  return tried;
}

tuned::Journal journal_of(const std::string& path, const std::string& text) {
  std::string why;
  std::optional<tuned::Journal> journal = tuned::decode_journal(text, &why);
  if (!journal) base::fail(ErrorCode::kInvalidFile, "'{}' is not a journal: {}", path, why);
  return std::move(*journal);
}

Story story_of(const std::string& path, const tuned::Journal& journal, const std::string& text) {
  Story story;
  story.path = path;
  story.predicted = journal.predicted;
  story.ended = journal.ended;
  story.damaged = journal.whole_bytes < text.size();
  story.candidates = journal.trials.size();
  read_facts(journal.subject, &story);
  follow(journal, &story);
  return story;
}

}  // namespace annulus::autotune::report
