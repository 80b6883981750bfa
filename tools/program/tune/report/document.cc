#include "program/tune/report/document.h"

#include <fmt/format.h>

#include <limits>

#include "base/fail.h"

namespace annulus::program::report {
namespace {

using base::Json;

constexpr std::int64_t kSchema = 1;
// The largest range of integers that JSON readers represent exactly.
constexpr std::int64_t kMaxNumber = std::int64_t{1} << 53;

// Real journals have fewer candidates, and real families have fewer parameters. These limits bound
// the size of each part of a page.
constexpr std::size_t kMaxTrials = 10'000;
constexpr std::size_t kMaxParameters = 64;

// A value and its place in the document. The enclosing value must outlive it.
class Value {
 public:
  Value(const Json& json, std::string_view what) : json_(json), what_(what) {}

  Value operator[](const char* name) const {
    const auto found = object().find(name);
    if (found == json_.end()) fail(fmt::format("it has no '{}'", name));
    return {*found, *this, name, 0};
  }
  std::optional<Value> find(const char* name) const {
    const auto found = object().find(name);
    if (found == json_.end() || found->is_null()) return std::nullopt;
    return Value(*found, *this, name, 0);
  }
  Value at(std::size_t index) const { return {json_[index], *this, nullptr, index}; }

  // The number of elements of an array. Throws if it is above `most`.
  std::size_t size(std::size_t most = std::numeric_limits<std::size_t>::max()) const {
    if (!json_.is_array()) fail("it is not an array");
    if (json_.size() > most)
      fail(fmt::format("it has {} elements, at most {}", json_.size(), most));
    return json_.size();
  }
  const Json& object() const {
    if (!json_.is_object()) fail("it is not an object");
    return json_;
  }
  std::string text() const {
    if (!json_.is_string()) fail("it is not a string");
    return json_.get<std::string>();
  }
  bool flag() const {
    if (!json_.is_boolean()) fail("it is neither true nor false");
    return json_.get<bool>();
  }
  std::int64_t integer(std::int64_t least = 0, std::int64_t most = kMaxNumber) const {
    if (!json_.is_number_integer() || json_ < least || json_ > most) {
      fail(fmt::format("it is not a whole number from {} to {}", least, most));
    }
    return json_.get<std::int64_t>();
  }
  std::size_t index(std::size_t count) const {
    return static_cast<std::size_t>(integer(0, static_cast<std::int64_t>(count) - 1));
  }
  // JSON null stands for a value without a number, and gives `none`.
  double number(double none = std::numeric_limits<double>::infinity()) const {
    if (json_.is_null()) return none;
    if (!json_.is_number()) fail("it is neither a number nor null");
    return json_.get<double>();
  }

  [[noreturn]] void fail(const std::string& why) const {
    base::fail(ErrorCode::kInvalidFile, "{}: {}: {}", document(), place(), why);
  }

 private:
  Value(const Json& json, const Value& above, const char* name, std::size_t index)
      : json_(json), above_(&above), name_(name), index_(index) {}

  std::string_view document() const { return above_ == nullptr ? what_ : above_->document(); }
  // The place as text, such as "searches[3].decision".
  std::string place() const {
    if (above_ == nullptr) return "the document";
    if (name_ == nullptr) return fmt::format("{}[{}]", above_->place(), index_);
    return above_->above_ == nullptr ? name_ : fmt::format("{}.{}", above_->place(), name_);
  }

  const Json& json_;
  std::string_view what_;
  const Value* above_ = nullptr;
  const char* name_ = nullptr;
  std::size_t index_ = 0;
};

Interval interval_of(const Value& from) {
  if (from.size() != 3) from.fail("it is not an array of three numbers");
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const double middle = from.at(1).number();
  // A lower end of null means that the interval is not bounded, except if the whole ratio
  // overflowed.
  return {from.at(0).number(middle == kInfinity ? kInfinity : -kInfinity), middle,
          from.at(2).number()};
}

Trial trial_of(const Value& from, const Decision& decision) {
  Trial trial;
  trial.configuration = from["configuration"].text();
  const Value family = from["family"];
  trial.family = family.text();
  const auto names = decision.families.find(trial.family);
  if (names == decision.families.end()) family.fail("it is not one of the families");
  const Value parameters = from["parameters"];
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    trial.parameters.push_back(parameters.at(i).integer(-kMaxNumber));
  }
  if (trial.parameters.size() != names->second.size()) {
    parameters.fail(fmt::format("it has {} numbers, and the family has {}", trial.parameters.size(),
                                names->second.size()));
  }
  trial.predicted_cycles = from["predicted_cycles"].number();
  const Value outcome = from["outcome"];
  if (outcome.text() == "dropped") {
    trial.outcome = Trial::Outcome::kDropped;
    trial.reason = from["reason"].text();
  } else if (outcome.text() == "tried") {
    trial.outcome = Trial::Outcome::kTried;
    trial.time = from["time"].number();
    trial.ratio = interval_of(from["ratio"]);
    trial.rounds = from["rounds"].integer();
  } else if (outcome.text() != "not tried") {
    outcome.fail("it is neither tried, dropped nor not tried");
  }
  return trial;
}

std::size_t tried_index_of(const Value& from, const Decision& decision) {
  const std::size_t index = from.index(decision.trials.size());
  if (decision.trials[index].outcome != Trial::Outcome::kTried) {
    from.fail("it is a trial that was not tried");
  }
  return index;
}

Decision decision_of(const Value& from) {
  Decision decision;
  decision.complete = from["complete"].flag();
  decision.tried = from["tried"].integer();
  decision.dropped = from["dropped"].integer();
  decision.winner_time = from["winner_time"].number();
  decision.default_time = from["default_time"].number();
  const Value families = from["families"];
  for (const auto& [name, unused] : families.object().items()) {
    const Value family = families[name.c_str()];
    std::vector<std::string>& names = decision.families[name];
    for (std::size_t i = 0; i < family.size(kMaxParameters); ++i)
      names.push_back(family.at(i).text());
  }
  const Value trials = from["trials"];
  for (std::size_t i = 0; i < trials.size(kMaxTrials); ++i) {
    decision.trials.push_back(trial_of(trials.at(i), decision));
  }
  decision.winner = tried_index_of(from["winner"], decision);
  decision.default_at = tried_index_of(from["default"], decision);
  if (const auto runner_up = from.find("runner_up")) {
    decision.runner_up = tried_index_of(*runner_up, decision);
  }
  const Value finalists = from["finalists"];
  for (std::size_t i = 0; i < finalists.size(kMaxTrials); ++i) {
    decision.finalists.push_back(tried_index_of(finalists.at(i), decision));
  }
  const Value order = from["order"];
  for (std::size_t i = 0; i < order.size(kMaxTrials); ++i) {
    const Value each = order.at(i);
    Step step{each["trial"].index(decision.trials.size()), true, 1, each["best"].number()};
    // null is a valid ratio, so find() cannot be used.
    if (each.object().contains("ratio")) {
      step.dropped = false;
      step.ratio = each["ratio"].number();
    }
    decision.order.push_back(step);
  }
  return decision;
}

Stored stored_of(const Value& from) {
  Stored stored;
  stored.path = from["path"].text();
  stored.device = from["device"].text();
  stored.shape = from["shape"].text();
  stored.configuration = from["configuration"].text();
  stored.default_configuration = from["default_configuration"].text();
  stored.pattern = from["pattern"].text();
  stored.predicted = from["predicted"].flag();
  stored.complete = from["complete"].flag();
  stored.time = from["time"].number();
  stored.default_time = from["default_time"].number();
  stored.ratio = interval_of(from["ratio"]);
  stored.driver = from["driver"].integer();
  stored.nvrtc = from["nvrtc"].integer();
  stored.clock_mhz = from["clock_mhz"].integer();
  stored.memory_clock_mhz = from["memory_clock_mhz"].integer();
  stored.when = from["when"].integer(-kMaxNumber);
  return stored;
}

}  // namespace

Document::Document(std::string_view text, std::string what) : what_(std::move(what)) {
  base::JsonLimits limits;
  limits.bytes = kMaxBytes;
  json_ = base::parse_json(text, what_, limits);
  const Value top(json_, what_), schema = top["schema"];
  if (schema.integer() != kSchema) {
    schema.fail(
        fmt::format("it is {}, and this program reads schema {} alone", schema.integer(), kSchema));
  }
}

std::size_t Document::searches() const { return Value(json_, what_)["searches"].size(); }

Search Document::search(std::size_t index) const {
  const Value top(json_, what_), all = top["searches"], from = all.at(index);
  Search search;
  search.journal = from["journal"].text();
  search.device = from["device"].text();
  search.shape = from["shape"].text();
  const Value facts = from["facts"];
  for (const auto& [name, unused] : facts.object().items()) {
    search.facts.emplace_back(name, facts[name.c_str()].text());
  }
  search.predicted = from["predicted"].flag();
  search.ended = from["ended"].flag();
  search.damaged = from["damaged"].flag();
  search.candidates = from["candidates"].integer(1);
  if (const auto decision = from.find("decision")) {
    search.decision = decision_of(*decision);
  } else {
    search.why_undecided = from["why_undecided"].text();
  }
  if (const auto stored = from.find("stored")) search.stored = stored_of(*stored);
  return search;
}

std::size_t Document::results() const { return Value(json_, what_)["results"].size(); }

Stored Document::result(std::size_t index) const {
  const Value top(json_, what_), all = top["results"];
  return stored_of(all.at(index));
}

std::vector<std::string> Document::left_out() const {
  const Value top(json_, what_), all = top["left_out"];
  std::vector<std::string> lines;
  for (std::size_t i = 0; i < all.size(); ++i) lines.push_back(all.at(i).text());
  return lines;
}

std::int64_t Document::further_left_out() const {
  return Value(json_, what_)["further_left_out"].integer();
}

}  // namespace annulus::program::report
