#ifndef ANNULUS_AUTOTUNE_SEARCH_H_
#define ANNULUS_AUTOTUNE_SEARCH_H_

// Decides which candidates are tried, in which order, and when one replaces the default.
//
// - The default, the heuristic's choice, is always tried, first and beside every other candidate.
// - Candidates that were nominated come next, then each time the one that is expected to gain most
//   over the best so far (surrogate.h). The search ends where some in a row were no better and none
//   is expected to gain anything worth a measurement, or where its share of the space is used up.
// - A candidate that is far behind after its first rounds gets no more. Among those that are close
//   to the best the rounds are doubled and the worse half is left, until few remain: successive
//   halving (Jamieson and Talwalkar, Non-stochastic Best Arm Identification and Hyperparameter
//   Optimization, 2016).
// - These finalists are measured again together with the default, in fresh rounds, because the luck
//   that made them look best does not repeat, until their intervals are narrow. One replaces the
//   default only where the 95 % interval of the median of its ratios to the default, round by
//   round, lies below 1 by more than a margin, and where it is not slower with L2 in its other
//   state. Differences between good configurations are often below 2 %, and so is the noise of a
//   shared machine; a result within it would change from run to run and could be a loss.
// - Among those that are equally good the first in the space's fixed order is taken, so that two
//   runs agree as often as they can.
// - A measurement in which the default took much longer than it can is repeated: the device was
//   throttled or busy with something else. Where it stays so the search goes on with the new pace.

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "attention/kernels/kernel_config.h"
#include "autotune/statistics.h"
#include "autotune/workbench.h"
#include "tuned/trial.h"

namespace annulus::autotune {

struct SearchProgress {
  int tried = 0;  // candidates tried or dropped
  int candidates = 0;
  int most = 0;  // that may be tried or dropped, before the search ends
  const tuned::Trial* last = nullptr;
  const tuned::Trial* best = nullptr;
};

struct SearchResult {
  std::size_t winner = 0;      // index of trials
  std::size_t default_at = 0;  // likewise
  std::optional<std::size_t> runner_up;
  std::vector<tuned::Trial>
      trials;              // in the space's order; a default that is not in the space comes last
  double winner_time = 0;  // median in the rounds in which the two were compared
  double default_time = 0;
  int tried = 0;  // candidates tried, without those that were dropped
  int dropped = 0;
  bool complete = false;  // the search ended by itself
  int repeated = 0;       // rounds that were repeated because the default was too slow in them
  bool slowed = false;    // it stayed too slow: the device's pace changed during the search
};

// `trials` are the candidates with their predictions, `default_at` the default among them. Throws
// Error{kCancelled} where a stop came while the default was planned, so that there is no best so
// far, the workbench's code where the default itself is dropped, and what the workbench throws.
SearchResult search(std::vector<tuned::Trial> trials, std::size_t default_at, Workbench& workbench,
                    const tuned::SearchOptions& options,
                    const std::function<void(const SearchProgress&)>& progress = {});

}  // namespace annulus::autotune

#endif  // ANNULUS_AUTOTUNE_SEARCH_H_
