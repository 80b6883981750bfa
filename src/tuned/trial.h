#ifndef ANNULUS_TUNED_TRIAL_H_
#define ANNULUS_TUNED_TRIAL_H_

// A candidate of a search and its outcome, as stored in journals.

#include <algorithm>
#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "attention/kernels/kernel_config.h"

namespace annulus::tuned {

// The contents of L2 when a measured launch begins.
enum class CacheState {
  kWarm,  // the contents that the previous launch with the same operands left
  kCold,  // nothing of the operands
};
constexpr CacheState other(CacheState state) {
  return state == CacheState::kWarm ? CacheState::kCold : CacheState::kWarm;
}

// An interval around a median.
struct Interval {
  double low = 0;
  double middle = 0;
  double high = 0;
};

struct SearchOptions {
  bool exhaustive = false;  // whether to try all candidates
  // Configurations that are tried first, in this order, if they are candidates: the best for other
  // problems.
  std::vector<attention::KernelConfig> nominated = {};
  CacheState l2 = CacheState::kWarm;  // the state of L2 in which a winner must be faster
  int patience = 6;     // a search ends after this many candidates in a row that are not better
  int least_most = 40;  // the number of candidates that a search may always try
  double share = 0.15;  // the share of the space that a search may try, if that is more candidates
  // rounds of a candidate's first measurement, each together with the default
  int first_rounds = 3;
  // rounds of the second measurement, for a candidate that is not far slower
  int quick_rounds = 15;
  int final_rounds = 25;        // rounds of the finalists' last measurement
  int max_final_rounds = 1600;  // the most rounds if the finalists' intervals are wide
  // the time limit for all final rounds, in microseconds; 100 rounds are always allowed
  double final_micros = 4e6;
  int max_finalists = 4;
  double margin = 0.01;  // a winner must be faster by this share, beyond the noise
  // Called before every candidate and every measurement, and while they are planned. If it returns
  // true, the search ends with the best result so far.
  std::function<bool()> stopped = {};

  // The number of candidates, out of `candidates`, that may be tried in addition to the default.
  int max_tried(std::size_t candidates) const {
    if (exhaustive) return static_cast<int>(candidates);
    return std::max(least_most, static_cast<int>(share * static_cast<double>(candidates)));
  }
};

// A candidate, its static prediction, and its outcome.
struct Trial {
  attention::KernelConfig config;
  double predicted = 0;  // the predicted cycles, from the plan alone
  enum class Outcome { kNotTried, kDropped, kTried } outcome = Outcome::kNotTried;
  std::string reason = {};  // the reason, for kDropped
  double time = 0;          // the median, in microseconds or cycles
  Interval ratio{1, 1, 1};  // time / default time, from the ratios of single rounds
  int rounds = 0;           // the number of rounds for the time and the ratio
  // The ratio of times with the other state of L2, if it was measured, which is done for finalists.
  std::optional<Interval> other_ratio = {};
};

}  // namespace annulus::tuned

#endif  // ANNULUS_TUNED_TRIAL_H_
