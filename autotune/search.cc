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

// A gain below this share is no step forward.
constexpr double kStep = 0.005;
// No candidate is worth a measurement that is expected to gain less than this share.
constexpr double kWorth = 0.0002;
// A median within this share of the best one counts as equal to it.
constexpr double kTie = 0.005;
// A candidate that is behind the best by this share after its first rounds gets no more.
constexpr double kBehind = 0.1;
// Contenders are candidates whose first measurement is within this share of the best one's, and at
// most so many for each finalist.
constexpr double kContender = 0.05;
constexpr int kContenders = 4;
// Intervals of finalists that are no wider than this are narrow enough.
constexpr double kNarrow = 0.003;
// Rounds of the finalists' last measurement, if their intervals are wide, however long these take.
constexpr double kAlways = 100;
// A device on which the default takes longer than it can by more than this share is not calm.
constexpr double kDisturbed = 0.1;
// How often a measurement is repeated because of that, each time after a longer rest.
constexpr int kAttempts = 4;
// Candidates that a workbench is told of ahead.
constexpr std::size_t kForeseen = 8;

using Times = std::vector<std::vector<double>>;  // as Workbench::measure gives them

// Measures configurations beside the default, and repeats what was measured while the device was
// slower than it can be. Whole measurements are judged, by a median: to leave out single rounds in
// which the default was slow would favour the default.
class CalmBench {
 public:
  CalmBench(Workbench& workbench, const std::function<bool()>& stopped)
      : workbench_(workbench), stopped_(stopped) {}

  // times[0] is that of the default, which is the first of `configs`. Throws Error{kCancelled}
  // where the search is stopped.
  Times measure(std::span<const KernelConfig> configs, int rounds, tuned::CacheState l2) {
    Times times = measure_once(configs, rounds, l2);
    if (workbench_.exact()) return times;
    double& least = l2 == tuned::CacheState::kCold ? least_cold_ : least_warm_;
    for (int attempt = 0; !is_calm(times, &least); ++attempt) {
      if (attempt == kAttempts) {
        // The device is not what it was, and this is how fast it is from here on.
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
  // The least medians of the default, with L2 warm and cold.
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

// What a candidate and the default took in the same rounds.
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
    most_ = options_.most_tried(result_.trials.size());
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
    // A stop also ends the planning of what is measured, which takes long for large problems.
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

  // Candidates that were not tried yet: those that were nominated, then the others by what they are
  // expected to gain over the best so far.
  struct Hope {
    double gain;
    std::size_t index;
  };
  std::vector<Hope> hopes() const {
    std::vector<Hope> all;
    // The best as the surrogate sees it: the least of many noisy ratios is a lucky one.
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

  // The next candidate, or nothing where none is left that could be worth trying. Tells the
  // workbench which ones are likely to follow.
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

  // False where a stop ended the call while it planned. A candidate that it was about is then one
  // that was not tried.
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

  // Prepares and measures a candidate. True where it is the new best by more than kStep.
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
    // Where all are tried, nothing is to be learnt for the sake of an order.
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

  // Measures candidates beside the default, rounds that count with those that they had before with
  // L2 in that state. Returns the default's median in these rounds.
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

  // Candidates that are close to the best, the best first.
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

  int most_final_rounds(const std::vector<std::size_t>& finalists) const {
    // Short launches are repeated in a round, and L2 is emptied before.
    constexpr double kLeast = 250;
    double micros = std::max(at(result_.default_at).time, kLeast);  // of a round
    for (const std::size_t index : finalists) micros += std::max(at(index).time, kLeast);
    const double most = options_.most_final_rounds;
    return static_cast<int>(
        std::clamp(options_.final_micros / micros, std::min(kAlways, most), most));
  }

  // Measures as many of these, the best first, as the device has memory for at a time.
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

  // Leaves the best half of the contenders, with twice the rounds each time, until the finalists
  // are left; measures these afresh, and then with L2 in its other state. Returns the default's
  // median in the fresh rounds.
  double measure_finalists(std::vector<std::size_t>* contenders) {
    const auto finalists = static_cast<std::size_t>(options_.max_finalists);
    for (int rounds = options_.quick_rounds; contenders->size() > finalists; rounds *= 2) {
      measure_fitting(contenders, rounds);
      sort(contenders);
      contenders->resize(std::min(contenders->size(), std::max(finalists, contenders->size() / 2)));
    }
    for (const std::size_t index : *contenders) measured_[index] = {};
    double default_time = 0;
    const int most = most_final_rounds(*contenders);
    for (int rounds = 0; rounds < most; rounds += options_.final_rounds) {
      default_time = measure_fitting(contenders, options_.final_rounds);
      if (narrow(*contenders)) break;
    }
    measure(*contenders, options_.final_rounds, other(options_.l2));
    return default_time;
  }

  // Measures the best candidates once more together with the default, and picks the winner. Exact
  // workbenches (predictions) need no second measurement, and a search that was stopped makes none.
  void decide(bool ended) {
    std::vector<std::size_t> finalists = contenders();
    double default_time = at(result_.default_at).time;
    if (!workbench_.exact() && !finalists.empty() && ended) {
      ended = !stopped() && until_stopped([&] { default_time = measure_finalists(&finalists); });
    }
    sort(&finalists);  // as they were measured last, wherever a stop came
    const auto most = static_cast<std::size_t>(options_.max_finalists);
    if (finalists.size() > most) finalists.resize(most);
    result_.complete = ended;
    pick(finalists);
    const tuned::Trial& winner = at(result_.winner);
    const bool is_default = result_.winner == result_.default_at;
    result_.winner_time = is_default ? default_time : winner.time;
    // The ratio gives the default's time in the winner's own rounds; default_time may be from other
    // rounds.
    result_.default_time = is_default ? default_time : winner.time / winner.ratio.middle;
  }

  // Whether a candidate is faster than the default beyond the noise and the margin, and not slower
  // with L2 in its other state.
  bool is_sure(const tuned::Trial& trial) const {
    return trial.ratio.high < 1 - options_.margin &&
           (!trial.other_ratio || trial.other_ratio->low <= 1);
  }

  // The winner is the fastest finalist that is surely faster than the default. Among those that tie
  // with it, the first in the space's order wins, so that two runs agree.
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
  std::vector<Measured> measured_;  // of each candidate
  std::vector<double> first_;       // not 0 for those nominated; the greatest is tried first
  SearchResult result_;
  std::size_t best_ = 0;
  int most_ = 0;  // candidates that may be tried beside the default
};

}  // namespace

SearchResult search(std::vector<tuned::Trial> trials, std::size_t default_at, Workbench& workbench,
                    const tuned::SearchOptions& options,
                    const std::function<void(const SearchProgress&)>& progress) {
  return Search(std::move(trials), default_at, workbench, options, progress).run();
}

}  // namespace annulus::autotune
