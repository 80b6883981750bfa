#include "autotune/search.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>

#include "attention/kernels/family.h"
#include "base/fail.h"
#include "base/work.h"

namespace annulus::autotune {
namespace {

using attention::KernelConfig;

// A neighbour of the best is tried as if it were predicted this much faster.
constexpr double kNeighbourBonus = 0.85;
// A candidate that is predicted to take this many times the best prediction is not tried.
constexpr double kHopeless = 3.0;
// A gain below this share is no step forward.
constexpr double kStep = 0.005;
// A median within this share of the best one counts as equal to it.
constexpr double kTie = 0.005;
// Finalists are candidates whose first measurement is within this share of the best one's.
constexpr double kFinalist = 0.03;

// Whether two configurations differ in at most one property, by one step. Tile rows and warps count
// as one property, since they change together.
bool neighbours(const KernelConfig& a, const KernelConfig& b) {
  if (a.family != b.family) return false;
  int steps = std::abs(a.tile_columns - b.tile_columns) / 16;
  if (a.tile_rows != b.tile_rows ||
      attention::cta_shape(a).warps != attention::cta_shape(b).warps) {
    ++steps;
  }
  const auto& fields = a.family->fields;
  for (std::size_t i = 0; i < fields.size(); ++i) {
    if (fields[i].step > 0) steps += std::abs(a.own[i] - b.own[i]) / fields[i].step;
  }
  return steps <= 1;
}

class Search {
 public:
  Search(std::vector<Trial> trials, std::size_t default_at, Workbench& workbench,
         const SearchOptions& options, const std::function<void(const SearchProgress&)>& progress)
      : workbench_(workbench), options_(options), progress_(progress) {
    result_.trials = std::move(trials);
    result_.default_at = result_.winner = best_ = default_at;
  }

  SearchResult run() {
    // A stop also ends the planning of what is measured, which takes long for large problems.
    const base::Work work({.steps = 0, .cancelled = options_.stopped}, "tuning");
    try_default();
    bool ended = false;
    for (int fruitless = 0; !stopped();) {
      const std::optional<std::size_t> next = choose();
      if (!next || (!options_.exhaustive && fruitless >= options_.patience)) {
        ended = true;
        break;
      }
      bool step = false;
      if (!until_stopped([&] { step = attempt(*next); })) break;
      fruitless = step ? 0 : fruitless + 1;
    }
    decide(ended);
    return std::move(result_);
  }

 private:
  bool stopped() const { return options_.stopped && options_.stopped(); }
  Trial& at(std::size_t index) { return result_.trials[index]; }

  void report(std::size_t last) {
    if (!progress_) return;
    progress_({result_.tried + result_.dropped, static_cast<int>(result_.trials.size()), &at(last),
               &at(best_)});
  }

  void try_default() {
    Trial& trial = at(result_.default_at);
    if (auto reason = workbench_.prepare(trial.config)) {
      base::fail(reason->code,
                 "the default configuration {} does not pass the check against the oracle: {}",
                 to_string(trial.config), reason->reason);
    }
    const int rounds = workbench_.exact() ? 1 : options_.quick_rounds;
    const KernelConfig only[] = {trial.config};
    trial.time = median(workbench_.measure(only, rounds).front());
    trial.outcome = Trial::Outcome::kTried;
    trial.rounds = rounds;
    ++result_.tried;
    report(result_.default_at);
  }

  // The next candidate, or nothing where none is left that could be worth trying.
  std::optional<std::size_t> choose() const {
    std::optional<std::size_t> next;
    double least = std::numeric_limits<double>::infinity();
    double max_hope = std::numeric_limits<double>::infinity();
    for (std::size_t i = 0; i < result_.trials.size(); ++i) {
      const Trial& trial = result_.trials[i];
      if (trial.outcome == Trial::Outcome::kDropped) continue;
      max_hope = std::min(max_hope, trial.predicted);
      if (trial.outcome == Trial::Outcome::kTried) continue;
      const bool near = neighbours(trial.config, result_.trials[best_].config);
      const double score = trial.predicted * (near ? kNeighbourBonus : 1.0);
      if (score < least) {
        least = score;
        next = i;
      }
    }
    if (!next || (!options_.exhaustive && least > kHopeless * max_hope)) return std::nullopt;
    return next;
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
    Trial& trial = at(index);
    if (auto reason = workbench_.prepare(trial.config)) {
      trial.outcome = Trial::Outcome::kDropped;
      trial.reason = std::move(reason->reason);
      ++result_.dropped;
      report(index);
      return false;
    }
    const KernelConfig both[] = {at(result_.default_at).config, trial.config};
    compare(both, workbench_.exact() ? 1 : options_.quick_rounds, {&trial});
    trial.outcome = Trial::Outcome::kTried;
    ++result_.tried;
    const double before = at(best_).ratio.middle;
    const bool step = trial.ratio.middle < before * (1 - kStep);
    if (trial.ratio.middle < before) best_ = index;
    report(index);
    return step;
  }

  // Measures the default, which is the first of `configs`, with the trials of the others. Returns
  // the default's median.
  double compare(std::span<const KernelConfig> configs, int rounds,
                 const std::vector<Trial*>& trials) {
    const auto times = workbench_.measure(configs, rounds);
    for (std::size_t i = 0; i < trials.size(); ++i) {
      std::vector<double> ratios;
      for (std::size_t r = 0; r < times[0].size(); ++r) {
        ratios.push_back(times[i + 1][r] / times[0][r]);
      }
      trials[i]->time = median(times[i + 1]);
      trials[i]->rounds = rounds;
      const double middle = median(ratios);
      trials[i]->ratio = workbench_.exact() ? Interval{middle, middle, middle}
                                            : median_interval(std::move(ratios));
    }
    return median(times[0]);
  }

  // Measures the best candidates once more together with the default, and picks the winner. Exact
  // workbenches (predictions) need no second measurement, and a search that was stopped makes none.
  void decide(bool ended) {
    std::vector<std::size_t> finalists;
    for (std::size_t i = 0; i < result_.trials.size(); ++i) {
      const Trial& trial = at(i);
      if (i == result_.default_at || trial.outcome != Trial::Outcome::kTried) continue;
      if (trial.ratio.middle <= at(best_).ratio.middle * (1 + kFinalist)) finalists.push_back(i);
    }
    const auto faster = [&](std::size_t a, std::size_t b) {
      return at(a).ratio.middle < at(b).ratio.middle;
    };
    std::ranges::stable_sort(finalists, faster);
    if (finalists.size() > static_cast<std::size_t>(options_.max_finalists)) {
      finalists.resize(static_cast<std::size_t>(options_.max_finalists));
    }
    double default_time = at(result_.default_at).time;
    if (!workbench_.exact() && !finalists.empty() && ended) {
      ended = !stopped() && until_stopped([&] {
        std::vector<KernelConfig> configs = {at(result_.default_at).config};
        std::vector<Trial*> trials;
        for (const std::size_t index : finalists) {
          configs.push_back(at(index).config);
          trials.push_back(&at(index));
        }
        default_time = compare(configs, options_.final_rounds, trials);
        std::ranges::stable_sort(finalists, faster);
      });
    }
    result_.complete = ended;
    pick(finalists);
    const Trial& winner = at(result_.winner);
    const bool is_default = result_.winner == result_.default_at;
    result_.winner_time = is_default ? default_time : winner.time;
    // The ratio gives the default's time in the winner's own rounds; default_time may be from other
    // rounds.
    result_.default_time = is_default ? default_time : winner.time / winner.ratio.middle;
  }

  // The winner is the fastest finalist whose ratio is certain to lie below 1 - margin. Among those
  // that tie with it, the first in the space's order wins, so that two runs agree.
  void pick(const std::vector<std::size_t>& finalists) {
    std::vector<std::size_t> sure;
    for (const std::size_t index : finalists) {
      if (at(index).ratio.high < 1 - options_.margin) sure.push_back(index);
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
  const SearchOptions& options_;
  const std::function<void(const SearchProgress&)>& progress_;
  SearchResult result_;
  std::size_t best_ = 0;
};

}  // namespace

SearchResult search(std::vector<Trial> trials, std::size_t default_at, Workbench& workbench,
                    const SearchOptions& options,
                    const std::function<void(const SearchProgress&)>& progress) {
  return Search(std::move(trials), default_at, workbench, options, progress).run();
}

}  // namespace annulus::autotune
