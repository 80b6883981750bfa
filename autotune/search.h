#ifndef ANNULUS_AUTOTUNE_SEARCH_H_
#define ANNULUS_AUTOTUNE_SEARCH_H_

// Which candidates are tried, in which order, and when one takes the place of the default.
//
// - The default, the heuristic's choice, is always tried, first and beside every other one.
// - Candidates come in the order of the static prediction; what differs in one step from the best
//   so far comes before its turn. The search ends where many candidates in a row were no better.
// - What looks best is measured again together with the default, in fresh rounds: the luck that
//   made it look best does not repeat. It takes the default's place only where the 95 % interval of
//   the median of its ratios to the default, round by round, lies below 1 by more than a margin.
//   Differences between good configurations are often below 2 %, and so is the noise of a shared
//   machine; a result within it would change from run to run and could be a loss.
// - Among those that are equally good the first in the space's fixed order is taken, so that two
//   runs agree as often as they can.

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "attention/kernels/kernel_config.h"
#include "autotune/statistics.h"
#include "autotune/workbench.h"

namespace annulus::autotune {

struct SearchOptions {
  bool exhaustive = false;  // try all of them
  int patience = 24;        // candidates in a row that are no better, after which it ends
  int quick_rounds = 7;     // of a candidate's first measurement, each beside the default
  int final_rounds = 25;    // of the best ones' last measurement
  int max_finalists = 4;
  double margin = 0.01;  // that a winner must be better by, beyond the noise
  // Asked before every candidate and every measurement: true ends the search with what it has.
  std::function<bool()> stopped;
};

// A candidate, what the static model says of it, and what came of it.
struct Trial {
  attention::KernelConfig config;
  double predicted = 0;  // cycles, from the plan alone
  enum class Outcome { kNotTried, kDropped, kTried } outcome = Outcome::kNotTried;
  std::string reason = {};  // of kDropped
  double time = 0;          // median, microseconds or cycles
  Interval ratio{1, 1, 1};  // of its times to the default's, round by round
  int rounds = 0;
};

struct SearchProgress {
  int tried = 0;  // and dropped
  int candidates = 0;
  const Trial* last = nullptr;
  const Trial* best = nullptr;
};

struct SearchResult {
  std::size_t winner = 0;      // index of trials
  std::size_t default_at = 0;  // likewise
  std::optional<std::size_t> runner_up;
  std::vector<Trial> trials;  // in the space's order; the default last where it is not in it
  double winner_time = 0;     // in the rounds in which the two were compared
  double default_time = 0;
  int tried = 0;  // not counting what was dropped
  int dropped = 0;
  bool complete = false;  // it ended by itself
};

// `trials` are the candidates with their predictions, `default_at` the default among them. Throws
// Error{kInternal} where the default itself is dropped, and what the workbench throws.
SearchResult search(std::vector<Trial> trials, std::size_t default_at, Workbench& workbench,
                    const SearchOptions& options,
                    const std::function<void(const SearchProgress&)>& progress = {});

}  // namespace annulus::autotune

#endif  // ANNULUS_AUTOTUNE_SEARCH_H_
