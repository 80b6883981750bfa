#include "autotune/search.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "autotune/surrogate.h"
#include "base/fail.h"
#include "base/work.h"

namespace annulus::autotune {
namespace {

using attention::KernelConfig;

// A smaller gain does not count as an improvement.
constexpr double kStep = 0.005;
// A candidate with a smaller expected gain is not worth a measurement.
constexpr double kWorth = 0.0002;
// A median whose relative distance to the best one is at most this counts as equal to it.
constexpr double kTie = 0.005;
// A candidate that is slower than the best by more than this share after its first rounds gets no
// more rounds.
constexpr double kBehind = 0.1;
// Contenders are candidates whose first measurement is within this share of the best one's. There
// are at most kContenders of them for each finalist.
constexpr double kContender = 0.05;
constexpr int kContenders = 4;
// A finalist's interval with at most this width is narrow enough.
constexpr double kNarrow = 0.003;
// If intervals are wide, the final measurement always has this number of rounds, even if they take
// long.
constexpr double kAlways = 100;
// If the default takes longer than its least time by more than this share, the device counts as
// disturbed.
constexpr double kDisturbed = 0.1;
// The most times that a measurement is repeated because of a disturbance. Each time the rest before
// it is longer.
constexpr int kAttempts = 4;
// The number of candidates that are announced to the workbench in advance.
constexpr std::size_t kForeseen = 8;

using Times = std::vector<std::vector<double>>;  // the times of Workbench::measure()

// Measures configurations together with the default, and repeats measurements made while the device
// was disturbed. A whole measurement is judged by a median. Leaving out only the rounds in which
// the default was slow would favour the default.
class CalmBench {
 public:
  CalmBench(Workbench& workbench, const std::function<bool()>& stopped)
      : workbench_(workbench), stopped_(stopped) {}

  // times[0] belongs to the default, which is the first of `configs`. Throws Error{kCancelled} if
  // the search is stopped.
  Times measure(std::span<const KernelConfig> configs, int rounds, tuned::CacheState l2) {
    Times times = measure_once(configs, rounds, l2);
    if (workbench_.exact()) return times;
    double& least = l2 == tuned::CacheState::kCold ? least_cold_ : least_warm_;
    for (int attempt = 0; !is_calm(times, &least); ++attempt) {
      if (attempt == kAttempts) {
        // The device has become slower, and the new speed is the reference from now on.
        slowed_ = true;
        least = median(times[0]);
        break;
      }
      repeated_ += rounds;
      workbench_.rest(attempt);
      times = measure_once(configs, rounds, l2);
    }
    return times;
  }

  int repeated() const { return repeated_; }
  bool slowed() const { return slowed_; }

 private:
  Times measure_once(std::span<const KernelConfig> configs, int rounds, tuned::CacheState l2) {
    if (stopped_ && stopped_()) base::fail(ErrorCode::kCancelled, "the search was stopped");
    return workbench_.measure(configs, rounds, l2);
  }

  static bool is_calm(const Times& times, double* least) {
    const double now = median(times[0]);
    *least = std::min(*least, now);
    return now <= *least * (1 + kDisturbed);
  }

  Workbench& workbench_;
  const std::function<bool()>& stopped_;
  // The least medians of the default, with warm and with cold L2.
  double least_warm_ = std::numeric_limits<double>::infinity();
  double least_cold_ = std::numeric_limits<double>::infinity();
  int repeated_ = 0;
  bool slowed_ = false;
};

Surrogate surrogate_of(const std::vector<tuned::Trial>& trials, std::size_t default_at) {
  std::vector<KernelConfig> configs;
  std::vector<double> predicted;
  for (const tuned::Trial& trial : trials) {
    configs.push_back(trial.config);
    predicted.push_back(trial.predicted);
  }
  return {std::move(configs), predicted, default_at};
}

// The times of a candidate, and their ratios to the default's times in the same rounds.
struct Measured {
  std::vector<double> times;
  std::vector<double> ratios;
};

class Search {
 public:
  Search(std::vector<tuned::Trial> trials, std::size_t default_at, Workbench& workbench,
         const tuned::SearchOptions& options,
         const std::function<void(const SearchProgress&)>& progress)
      : workbench_(workbench),
        bench_(workbench, options.stopped),
        options_(options),
        progress_(progress),
        surrogate_(surrogate_of(trials, default_at)),
        measured_(trials.size()),
        first_(trials.size()) {
    result_.trials = std::move(trials);
    result_.default_at = result_.winner = best_ = default_at;
    most_ = options_.max_tried(result_.trials.size());
    double first = std::numeric_limits<double>::max();
    for (const KernelConfig& config : options_.nominated) {
      const auto found = std::ranges::find_if(
          result_.trials, [&](const tuned::Trial& trial) { return trial.config == config; });
      if (found == result_.trials.end()) continue;
      first_[static_cast<std::size_t>(found - result_.trials.begin())] = first;
      first /= 2;
    }
  }

  SearchResult run() {
    // A stop also ends planning, which takes long for large problems.
    const base::Work work({.steps = 0, .cancelled = options_.stopped}, "tuning");
    try_default();
    bool ended = false;
    for (int fruitless = 0; !stopped();) {
      const std::optional<std::size_t> next = choose(fruitless);
      if (!next) {
        ended = true;
        break;
      }
      bool step = false;
      if (!until_stopped([&] { step = attempt(*next); })) break;
      fruitless = step ? 0 : fruitless + 1;
    }
    decide(ended);
    result_.repeated = bench_.repeated();
    result_.slowed = bench_.slowed();
    return std::move(result_);
  }

 private:
  bool stopped() const { return options_.stopped && options_.stopped(); }
  tuned::Trial& at(std::size_t index) { return result_.trials[index]; }
  const tuned::Trial& at(std::size_t index) const { return result_.trials[index]; }

  void report(std::size_t last) {
    if (!progress_) return;
    const int candidates = static_cast<int>(result_.trials.size());
    progress_({result_.tried + result_.dropped, candidates,
               std::min(1 + most_ + result_.dropped, candidates), &at(last), &at(best_)});
  }

  void try_default() {
    tuned::Trial& trial = at(result_.default_at);
    if (auto reason = workbench_.prepare(trial.config)) {
      base::fail(reason->code,
                 "the default configuration {} does not pass the check against the oracle: {}",
                 to_string(trial.config), reason->reason);
    }
    const int rounds = workbench_.exact() ? 1 : options_.quick_rounds;
    const KernelConfig only[] = {trial.config};
    trial.time = median(bench_.measure(only, rounds, options_.l2).front());
    trial.outcome = tuned::Trial::Outcome::kTried;
    trial.rounds = rounds;
    ++result_.tried;
    report(result_.default_at);
  }

  // The candidates that were not tried yet: first the nominated ones, then the others by expected
  // gain over the best so far.
  struct Hope {
    double gain;
    std::size_t index;
  };
  std::vector<Hope> hopes() const {
    std::vector<Hope> all;
    // The surrogate's estimate of the best ratio, because the least of many noisy ratios is too
    // low.
    double best = 0;
    for (std::size_t i = 0; i < result_.trials.size(); ++i) {
      if (at(i).outcome != tuned::Trial::Outcome::kTried) continue;
      const double known = surrogate_.forecast(i).log_ratio;
      if (std::isfinite(known)) best = std::min(best, known);
    }
    for (std::size_t i = 0; i < result_.trials.size(); ++i) {
      if (at(i).outcome != tuned::Trial::Outcome::kNotTried) continue;
      all.push_back({first_[i] > 0 ? first_[i] : surrogate_.expected_gain(i, best), i});
    }
    const auto before = [](const Hope& a, const Hope& b) {
      return a.gain != b.gain ? a.gain > b.gain : a.index < b.index;
    };
    const std::size_t leading = std::min(all.size(), kForeseen + 1);
    std::ranges::partial_sort(all, all.begin() + static_cast<std::ptrdiff_t>(leading), before);
    all.resize(leading);
    return all;
  }

  // The next candidate, or no value if none is worth trying. Announces to the workbench which
  // candidates are likely to follow.
  std::optional<std::size_t> choose(int fruitless) {
    const std::vector<Hope> all = hopes();
    if (all.empty() || result_.tried > most_) return std::nullopt;
    const double least = fruitless < options_.patience ? 0 : kWorth;
    if (!options_.exhaustive && all.front().gain <= least) return std::nullopt;
    std::vector<KernelConfig> next;
    for (const Hope& hope : all) {
      if (options_.exhaustive || hope.gain > kWorth) next.push_back(at(hope.index).config);
    }
    workbench_.foresee(next);
    return all.front().index;
  }

  // Returns false if a stop ended the call while it planned. The call's candidate then counts as
  // not tried.
  template <typename Call>
  static bool until_stopped(const Call& call) {
    try {
      call();
      return true;
    } catch (const Error& error) {
      if (error.code() != ErrorCode::kCancelled) throw;
      return false;
    }
  }

  // Prepares and measures a candidate. Returns true if it is better than the best so far by more
  // than kStep.
  bool attempt(std::size_t index) {
    tuned::Trial& trial = at(index);
    if (auto reason = workbench_.prepare(trial.config)) {
      trial.outcome = tuned::Trial::Outcome::kDropped;
      trial.reason = std::move(reason->reason);
      ++result_.dropped;
      report(index);
      return false;
    }
    const double before = at(best_).ratio.middle;
    measure({index}, workbench_.exact() ? 1 : options_.first_rounds, options_.l2);
    const int more = options_.quick_rounds - options_.first_rounds;
    if (!workbench_.exact() && more > 0 && trial.ratio.middle < before * (1 + kBehind)) {
      measure({index}, more, options_.l2);
    }
    trial.outcome = tuned::Trial::Outcome::kTried;
    ++result_.tried;
    // If all candidates are tried, the order does not matter, so the surrogate is not updated.
    if (!options_.exhaustive) {
      surrogate_.observe(index, std::log(trial.ratio.middle),
                         workbench_.exact() ? 0 : error_of_median(measured_[index].ratios));
    }
    if (trial.ratio.middle < before) best_ = index;
    report(index);
    return trial.ratio.middle < before * (1 - kStep);
  }

  tuned::Interval interval(const std::vector<double>& ratios) const {
    if (!workbench_.exact()) return median_interval(ratios);
    return {ratios.front(), ratios.front(), ratios.front()};
  }

  // Measures candidates together with the default. The rounds are added to the candidates' earlier
  // rounds with the same state of L2. Returns the default's median in the new rounds.
  double measure(const std::vector<std::size_t>& indices, int rounds, tuned::CacheState l2) {
    std::vector<KernelConfig> configs = {at(result_.default_at).config};
    for (const std::size_t index : indices) configs.push_back(at(index).config);
    const Times times = bench_.measure(configs, rounds, l2);
    for (std::size_t i = 0; i < indices.size(); ++i) {
      tuned::Trial& trial = at(indices[i]);
      std::vector<double> ratios;
      for (std::size_t r = 0; r < times[0].size(); ++r) {
        ratios.push_back(times[i + 1][r] / times[0][r]);
      }
      if (l2 != options_.l2) {
        trial.other_ratio = interval(ratios);
        continue;
      }
      Measured& all = measured_[indices[i]];
      all.times.insert(all.times.end(), times[i + 1].begin(), times[i + 1].end());
      all.ratios.insert(all.ratios.end(), ratios.begin(), ratios.end());
      trial.time = median(all.times);
      trial.ratio = interval(all.ratios);
      trial.rounds = static_cast<int>(all.ratios.size());
    }
    return median(times[0]);
  }

  void sort(std::vector<std::size_t>* indices) const {
    std::ranges::stable_sort(*indices, [&](std::size_t a, std::size_t b) {
      return at(a).ratio.middle < at(b).ratio.middle;
    });
  }

  // The candidates that are close to the best, the best first.
  std::vector<std::size_t> contenders() const {
    std::vector<std::size_t> close;
    for (std::size_t i = 0; i < result_.trials.size(); ++i) {
      if (i == result_.default_at || at(i).outcome != tuned::Trial::Outcome::kTried) continue;
      if (at(i).ratio.middle <= at(best_).ratio.middle * (1 + kContender)) close.push_back(i);
    }
    sort(&close);
    const auto most = static_cast<std::size_t>(kContenders * options_.max_finalists);
    if (close.size() > most) close.resize(most);
    return close;
  }

  bool narrow(const std::vector<std::size_t>& indices) const {
    return std::ranges::all_of(indices, [&](std::size_t index) {
      return at(index).ratio.high - at(index).ratio.low <= kNarrow;
    });
  }

  int max_final_rounds(const std::vector<std::size_t>& finalists) const {
    // Short launches are repeated within a round, and L2 is emptied before each round.
    constexpr double kLeast = 250;
    double micros = std::max(at(result_.default_at).time, kLeast);  // the time of one round
    for (const std::size_t index : finalists) micros += std::max(at(index).time, kLeast);
    const double most = options_.max_final_rounds;
    return static_cast<int>(
        std::clamp(options_.final_micros / micros, std::min(kAlways, most), most));
  }

  // Measures the best of these candidates, up to the number that fits in the device's memory at
  // once.
  double measure_fitting(std::vector<std::size_t>* indices, int rounds) {
    while (true) {
      try {
        return measure(*indices, rounds, options_.l2);
      } catch (const Error& error) {
        if (error.code() != ErrorCode::kOutOfMemory || indices->size() == 1) throw;
        indices->resize(indices->size() / 2);
      }
    }
  }

  // Halves the contenders, with twice the rounds each time, until only the finalists remain.
  // Measures the finalists in fresh rounds, and then with the other state of L2. Returns the
  // default's median in the fresh rounds.
  double measure_finalists(std::vector<std::size_t>* contenders) {
    const auto finalists = static_cast<std::size_t>(options_.max_finalists);
    for (int rounds = options_.quick_rounds; contenders->size() > finalists; rounds *= 2) {
      measure_fitting(contenders, rounds);
      sort(contenders);
      contenders->resize(std::min(contenders->size(), std::max(finalists, contenders->size() / 2)));
    }
    for (const std::size_t index : *contenders) measured_[index] = {};
    double default_time = 0;
    const int most = max_final_rounds(*contenders);
    for (int rounds = 0; rounds < most; rounds += options_.final_rounds) {
      default_time = measure_fitting(contenders, options_.final_rounds);
      if (narrow(*contenders)) break;
    }
    measure(*contenders, options_.final_rounds, other(options_.l2));
    return default_time;
  }

  // Measures the best candidates again together with the default, and picks the winner. Exact
  // workbenches (predictions) need no second measurement, and a search that was stopped makes none.
  void decide(bool ended) {
    std::vector<std::size_t> finalists = contenders();
    double default_time = at(result_.default_at).time;
    if (!workbench_.exact() && !finalists.empty() && ended) {
      ended = !stopped() && until_stopped([&] { default_time = measure_finalists(&finalists); });
    }
    sort(&finalists);  // the last measurements count, even if a stop ended them
    const auto most = static_cast<std::size_t>(options_.max_finalists);
    if (finalists.size() > most) finalists.resize(most);
    result_.complete = ended;
    pick(finalists);
    const tuned::Trial& winner = at(result_.winner);
    const bool is_default = result_.winner == result_.default_at;
    result_.winner_time = is_default ? default_time : winner.time;
    // The default's time follows from the ratio in the winner's own rounds. default_time may be
    // from other rounds.
    result_.default_time = is_default ? default_time : winner.time / winner.ratio.middle;
  }

  // Whether a candidate is faster than the default by more than the noise and the margin, and not
  // slower with the other state of L2.
  bool is_sure(const tuned::Trial& trial) const {
    return trial.ratio.high < 1 - options_.margin &&
           (!trial.other_ratio || trial.other_ratio->low <= 1);
  }

  // The winner is the fastest finalist that is certainly faster than the default. Of finalists that
  // tie with it, the first in the space's order wins, so that repeated searches agree.
  void pick(const std::vector<std::size_t>& finalists) {
    std::vector<std::size_t> sure;
    for (const std::size_t index : finalists) {
      if (is_sure(at(index))) sure.push_back(index);
    }
    if (!sure.empty()) {
      const double tie = at(sure.front()).ratio.middle * (1 + kTie);
      result_.winner = sure.front();
      for (const std::size_t index : sure) {
        if (at(index).ratio.middle <= tie) result_.winner = std::min(result_.winner, index);
      }
    }
    for (const std::size_t index : finalists) {
      if (index == result_.winner) continue;
      result_.runner_up = index;
      break;
    }
    if (!result_.runner_up && result_.winner != result_.default_at) {
      result_.runner_up = result_.default_at;
    }
  }

  Workbench& workbench_;
  CalmBench bench_;
  const tuned::SearchOptions& options_;
  const std::function<void(const SearchProgress&)>& progress_;
  Surrogate surrogate_;
  std::vector<Measured> measured_;  // one for each candidate
  std::vector<double> first_;  // not 0 for nominated candidates; the greatest value is tried first
  SearchResult result_;
  std::size_t best_ = 0;
  int most_ = 0;  // the number of candidates that may be tried in addition to the default
};

}  // namespace

SearchResult search(std::vector<tuned::Trial> trials, std::size_t default_at, Workbench& workbench,
                    const tuned::SearchOptions& options,
                    const std::function<void(const SearchProgress&)>& progress) {
  return Search(std::move(trials), default_at, workbench, options, progress).run();
}

}  // namespace annulus::autotune
