#ifndef ANNULUS_TUNED_TRIAL_H_
#define ANNULUS_TUNED_TRIAL_H_

// A candidate of a search and what came of it, as journals hold it.

#include <algorithm>
#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "attention/kernels/kernel_config.h"

namespace annulus::tuned {

// What L2 holds when a measured launch begins.
enum class CacheState {
  kWarm,  // what the launch before, with the same operands, left
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
  bool exhaustive = false;  // try all candidates
  // Tried first, in this order, as far as they are candidates: what was best for other problems.
  std::vector<attention::KernelConfig> nominated = {};
  CacheState l2 = CacheState::kWarm;  // that a winner is to be faster in
  int patience = 6;       // this many candidates in a row are no better before a search ends
  int least_most = 40;    // candidates that a search may always try
  double share = 0.15;    // of the space that it may try, if that is more
  int first_rounds = 3;   // rounds of a candidate's first measurement, each beside the default
  int quick_rounds = 15;  // rounds of one that is not far behind by then
  int final_rounds = 25;  // rounds of the finalists' last measurement
  int most_final_rounds = 1600;  // where their intervals are wide
  double final_micros = 4e6;     // that all of them may take, beyond 100 rounds
  int max_finalists = 4;
  double margin = 0.01;  // a winner must be better by this share, beyond the noise
  // Asked before every candidate and every measurement, and while they are planned; true ends the
  // search with the best so far.
  std::function<bool()> stopped = {};

  // Returns how many of so many candidates may be tried beside the default.
  int most_tried(std::size_t candidates) const {
    if (exhaustive) return static_cast<int>(candidates);
    return std::max(least_most, static_cast<int>(share * static_cast<double>(candidates)));
  }
};

// A candidate, its static prediction, and its outcome.
struct Trial {
  attention::KernelConfig config;
  double predicted = 0;  // cycles, from the plan alone
  enum class Outcome { kNotTried, kDropped, kTried } outcome = Outcome::kNotTried;
  std::string reason = {};  // of kDropped
  double time = 0;          // median, microseconds or cycles
  Interval ratio{1, 1, 1};  // its times over the default's, round by round
  int rounds = 0;           // that time and ratio are of
  // The same ratio with L2 in its other state, where it was measured: of finalists.
  std::optional<Interval> other_ratio = {};
};

}  // namespace annulus::tuned

#endif  // ANNULUS_TUNED_TRIAL_H_
