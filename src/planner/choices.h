#ifndef ANNULUS_PLANNER_CHOICES_H_
#define ANNULUS_PLANNER_CHOICES_H_

// Which configurations a problem is planned with, in the order in which they are tried: the tuned
// one, where there is a tuned result for such a problem, then the heuristic's. Decided without
// touching a device; the tuned store is memory once it was read.

#include <optional>
#include <string>

#include "annulus/device.h"
#include "annulus/error.h"
#include "attention/plan/plan.h"
#include "autotune/store.h"
#include "base/log.h"

namespace annulus::planner {

// What is left of a device for a plan with such options. Throws Error{kInvalidArgument} where
// options are out of their range.
attention::DeviceLimits limits_for(attention::DeviceLimits device, const PlanOptions& options);

// What a configuration is chosen for.
struct Subject {
  const Problem& problem;
  const Selection* selection = nullptr;  // null: the tiles are known when planning
  bool placed = false;                   // tensors are shards of several segments
};

// A tuned result, and the choice that it makes.
struct TunedChoice {
  attention::Choice choice;
  autotune::TunedStore::Found found;
};

struct Choices {
  attention::Choice untuned;         // what the caller asked for, else the heuristic's
  std::optional<TunedChoice> tuned;  // tried first; may turn out not to work
};

// Tuned results are looked at where the caller asked for no configuration, for problems of one
// pattern that launch something and choose no blocks on the device. Throws as
// attention::choose_config and attention::forced_config do.
Choices choose(const Subject& subject, const attention::DeviceLimits& limits,
               const PlanOptions& options, autotune::TunedStore& tuned);

// PlanInfo::tuned of a result that is used: its file, or "memory".
std::string origin_of(const autotune::TunedStore::Found& found);

// After planning with a tuned result failed: a line in the log, and the result is not looked at
// again. Throws the error where another configuration would fail with it too.
void give_up(const autotune::TunedStore::Found& found, const Error& error,
             autotune::TunedStore& tuned, const base::Log& log);

// make(choice, tuned) with the first choice that works; `tuned` is origin_of() of the result that
// the choice comes from, empty where it comes from none.
template <typename Make>
auto with_first_that_works(const Choices& choices, autotune::TunedStore& tuned,
                           const base::Log& log, const Make& make) {
  if (choices.tuned) {
    try {
      return make(choices.tuned->choice, origin_of(choices.tuned->found));
    } catch (const Error& error) {
      give_up(choices.tuned->found, error, tuned, log);
    }
  }
  return make(choices.untuned, std::string());
}

}  // namespace annulus::planner

#endif  // ANNULUS_PLANNER_CHOICES_H_
