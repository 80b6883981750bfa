#include "autotune/replay.h"

#include <algorithm>
#include <utility>

#include "base/fail.h"

namespace annulus::autotune {

using attention::KernelConfig;

SearchResult replay(const tuned::Journal& journal,
                    const std::function<void(const SearchProgress&)>& progress) {
  JournalWorkbench bench(nullptr, journal);
  try {
    return search(journal.trials, journal.default_at, bench, journal.options, progress);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kCancelled) throw;
    base::fail(ErrorCode::kUnsupported,
               "the journal ends before the default configuration was measured");
  }
}

// Measured: 30 to 45 ns for a step, and the same for a byte, with 300 to 8192 candidates.
std::int64_t replay_steps(const tuned::Journal& journal) {
  constexpr std::int64_t kLearntInAStep = 16;
  const std::int64_t candidates = std::ssize(journal.trials);
  // Each turn adds a finding, and so does the default.
  const std::int64_t turns = std::min(candidates, std::ssize(journal.findings) + 1);
  const std::int64_t tried = std::min<std::int64_t>(
      turns, 1 + journal.options.max_tried(static_cast<std::size_t>(candidates)));
  const std::int64_t learnt = journal.options.exhaustive ? 0 : tried;
  return candidates * (turns + learnt * learnt / kLearntInAStep);
}

JournalWorkbench::JournalWorkbench(Workbench* inner, const tuned::Journal& journal,
                                   std::function<void(const tuned::Finding&)> found)
    : inner_(inner),
      exact_(journal.predicted),
      default_config_(to_string(journal.trials[journal.default_at].config)),
      found_(std::move(found)) {
  for (const tuned::Finding& finding : journal.findings) {
    know(finding);
    if (finding.dropped) continue;
    const Question question(finding.configs, finding.times.front().size(),
                            finding.l2 == tuned::CacheState::kCold);
    answers_[question].push_back(finding.times);
  }
}

void JournalWorkbench::know(const tuned::Finding& finding) {
  if (finding.dropped) {
    dropped_[finding.configs.front()] = *finding.dropped;
    return;
  }
  for (std::size_t i = 0; i < finding.configs.size(); ++i) {
    tried_[finding.configs[i]] = finding.times[i];
  }
}

void JournalWorkbench::keep(tuned::Finding finding) {
  know(finding);
  if (found_) found_(finding);
}

Workbench& JournalWorkbench::inner() {
  if (inner_ == nullptr) base::fail(ErrorCode::kCancelled, "the journal ends here");
  return *inner_;
}

// Only a measurement shows that a candidate passed. A candidate that was prepared but not measured
// was in progress when the search was killed. A default that is dropped ends the search with an
// error, and the next search tries it again.
std::optional<Dropped> JournalWorkbench::prepare(const KernelConfig& config) {
  const std::string name = to_string(config);
  if (const auto found = dropped_.find(name); found != dropped_.end()) {
    return Dropped{found->second};
  }
  if (tried_.contains(name)) return std::nullopt;
  std::optional<Dropped> dropped = inner().prepare(config);
  if (dropped && name != default_config_) {
    keep({.configs = {name}, .dropped = dropped->reason, .times = {}});
  }
  return dropped;
}

// Only candidates that are not in the journal are compiled ahead.
void JournalWorkbench::foresee(std::span<const KernelConfig> next) {
  if (inner_ == nullptr) return;
  std::vector<KernelConfig> unknown;
  for (const KernelConfig& config : next) {
    const std::string name = to_string(config);
    if (!tried_.contains(name) && !dropped_.contains(name)) unknown.push_back(config);
  }
  inner_->foresee(unknown);
}

// Answers from the journal need no rest, so the rest is postponed.
void JournalWorkbench::rest(int attempt) { rest_ = attempt; }

std::vector<std::vector<double>> JournalWorkbench::measure(std::span<const KernelConfig> configs,
                                                           int rounds, tuned::CacheState l2) {
  Names names;
  for (const KernelConfig& config : configs) names.push_back(to_string(config));
  if (exact_) return predict(configs, names);
  const auto known = answers_.find(
      Question(names, static_cast<std::size_t>(rounds), l2 == tuned::CacheState::kCold));
  if (known != answers_.end() && !known->second.empty()) {
    std::vector<std::vector<double>> times = std::move(known->second.front());
    known->second.pop_front();
    rest_.reset();
    return times;
  }
  if (rest_) inner().rest(*rest_);
  rest_.reset();
  std::vector<std::vector<double>> times = inner().measure(configs, rounds, l2);
  keep({.configs = std::move(names), .dropped = {}, .times = times, .l2 = l2});
  return times;
}

// A prediction does not depend on the other configurations, so each configuration is predicted
// once.
std::vector<std::vector<double>> JournalWorkbench::predict(std::span<const KernelConfig> configs,
                                                           const Names& names) {
  std::vector<std::vector<double>> times;
  for (std::size_t i = 0; i < configs.size(); ++i) {
    if (!tried_.contains(names[i])) {
      keep({.configs = {names[i]},
            .dropped = {},
            .times = inner().measure(configs.subspan(i, 1), 1, tuned::CacheState::kWarm)});
    }
    times.push_back(tried_.at(names[i]));
  }
  return times;
}

}  // namespace annulus::autotune
