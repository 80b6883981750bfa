#ifndef ANNULUS_AUTOTUNE_SEARCH_H_
#define ANNULUS_AUTOTUNE_SEARCH_H_

// Decides which candidates are tried, in which order, and whether one replaces the default.
//
// - The default, which is the heuristic's choice, is tried first. It is also measured together with
//   every other candidate.
// - Nominated candidates come next. After them, each time the candidate with the largest expected
//   gain over the best so far is tried (surrogate.h). The search ends after several candidates in a
//   row were not better and none has an expected gain that is worth a measurement. It also ends
//   after its share of the space was tried.
// - A candidate that is far slower after its first rounds gets no more rounds. Among candidates
//   close to the best, the rounds are doubled and the worse half is dropped, until few remain:
//   successive halving (Jamieson and Talwalkar, Non-stochastic Best Arm Identification and
//   Hyperparameter Optimization, 2016).
// - These finalists are measured again together with the default, until their intervals are narrow.
//   The rounds are fresh, because the luck that made them look best does not repeat. A finalist
//   replaces the default only if the 95 % interval of the median of its per-round ratios to the
//   default is below 1 by more than a margin, and if it is not slower with the other state of L2.
//   Differences between good configurations are often below 2 %, and so is the noise of a shared
//   machine. A result within the noise would change from run to run and could be a loss.
// - Of equally good candidates, the first in the space's fixed order is taken, so that repeated
//   searches agree as often as possible.
// - A measurement in which the default took much longer than usual is repeated: the device was
//   throttled or busy. If the default stays slow, the search continues with the new speed.

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
  int tried = 0;  // the number of candidates that were tried or dropped
  int candidates = 0;
  int most = 0;  // the number of candidates that may be tried or dropped before the search ends
  const tuned::Trial* last = nullptr;
  const tuned::Trial* best = nullptr;
};

struct SearchResult {
  std::size_t winner = 0;      // index of trials
  std::size_t default_at = 0;  // index of trials
  std::optional<std::size_t> runner_up;
  std::vector<tuned::Trial>
      trials;              // in the space's order; a default that is not in the space comes last
  double winner_time = 0;  // median in the rounds in which the winner and the default were compared
  double default_time = 0;
  int tried = 0;  // candidates that were tried, without dropped ones
  int dropped = 0;
  bool complete = false;  // the search completed
  int repeated = 0;       // rounds that were repeated because the default was too slow in them
  bool slowed = false;    // the default stayed slow: the device's speed changed during the search
};

// `trials` are the candidates with their predictions, and `default_at` is the index of the default.
// Throws Error{kCancelled} if a stop came while the default was planned, because then there is no
// best so far. If the default is dropped, throws an error with the workbench's code. Errors of the
// workbench pass through.
SearchResult search(std::vector<tuned::Trial> trials, std::size_t default_at, Workbench& workbench,
                    const tuned::SearchOptions& options,
                    const std::function<void(const SearchProgress&)>& progress = {});

}  // namespace annulus::autotune

#endif  // ANNULUS_AUTOTUNE_SEARCH_H_
