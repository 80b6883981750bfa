#ifndef ANNULUS_PLANNER_CHOICES_H_
#define ANNULUS_PLANNER_CHOICES_H_

// The configurations that a problem is planned with, in the order in which they are tried: the
// tuned configuration, if there is a tuned result for such a problem, then the heuristic's. This
// code uses no device. The tuned store is in memory after it has been read.

#include <optional>
#include <string>

#include "annulus/device.h"
#include "annulus/types.h"
#include "attention/plan/plan.h"
#include "base/log.h"
#include "tuned/store.h"

namespace annulus::planner {

// The limits of the device, reduced by these options. Throws Error{kInvalidArgument} if an option
// is out of range.
attention::DeviceLimits limits_for(attention::DeviceLimits device, const PlanOptions& options);

// The subject of a choice of a configuration: a problem, perhaps with a selection or in a ring.
struct Subject {
  const Problem& problem;
  const Selection* selection = nullptr;  // null: the tiles are known at planning time
  attention::Segments segments = {};     // the segments of all launches
  // The problem whose tuned result is used. Null: `problem` itself.
  const Problem* step = nullptr;
};

// The key to look up the tuned result. Requires: the problem launches something.
tuned::ShapeKey key_of(const Subject& subject);

// A tuned result, and the choice that follows from it.
struct TunedChoice {
  attention::Choice choice;
  tuned::TunedStore::Found found;
};

// A result that was measured on a relative of the device (tuned/device_key.h) is used only if the
// pipe model predicts that its time on this device is at most this factor times the time of the
// heuristic's choice.
inline constexpr double kMaxOverHeuristic = 1.05;

struct Choices {
  attention::Choice untuned;         // the requested configuration, else the heuristic's
  std::optional<TunedChoice> tuned;  // tried first; its kernel may turn out not to work
};

// The configuration that the caller requested, else the heuristic's. Throws as
// attention::choose_config and attention::forced_config do.
attention::Choice untuned(const Subject& subject, const attention::DeviceLimits& limits,
                          const PlanOptions& options);

// Looks up a tuned result only if the caller requested no configuration, and only for problems that
// launch something. Throws as attention::choose_config and attention::forced_config do.
Choices choose(const Subject& subject, const attention::DeviceLimits& limits,
               const PlanOptions& options, tuned::TunedStore& tuned);

// The reason that a plan has the configuration of a result, such as "tuned, took 0.91 of the
// heuristic's time (of this very kind of problem); from /home/...".
std::string tuned_reason(const tuned::TunedStore::Found& found);

// The value of PlanInfo::tuned for a result that is used: its file, or "memory".
std::string origin_of(const tuned::TunedStore::Found& found);

// Called if planning with a tuned result failed: writes a line to the log and removes the result
// from the store's memory. Throws the error again if another configuration would also fail with it.
void give_up(const tuned::TunedStore::Found& found, const Error& error, tuned::TunedStore& tuned,
             const base::Log& log);

// Calls make(choice, tuned) with the tuned choice, and with the other choice if that fails. `tuned`
// is origin_of() of the result that the choice comes from, or empty.
template <typename Make>
auto with_first_that_works(const Choices& choices, tuned::TunedStore& tuned, const base::Log& log,
                           const Make& make) {
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
