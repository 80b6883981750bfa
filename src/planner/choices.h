#ifndef ANNULUS_PLANNER_CHOICES_H_
#define ANNULUS_PLANNER_CHOICES_H_

// Which configurations a problem is planned with, in the order in which they are tried: the tuned
// one, where there is a tuned result for such a problem, then the heuristic's. Nothing here touches
// a device, and the tuned store is in memory once it has been read.

#include <optional>
#include <string>

#include "annulus/device.h"
#include "annulus/types.h"
#include "attention/plan/plan.h"
#include "base/log.h"
#include "tuned/store.h"

namespace annulus::planner {

// The limits of the device that are left for a plan with these options. Throws
// Error{kInvalidArgument} where options are out of their range.
attention::DeviceLimits limits_for(attention::DeviceLimits device, const PlanOptions& options);

// The subject of a choice: a problem, perhaps with a selection or in a ring.
struct Subject {
  const Problem& problem;
  const Selection* selection = nullptr;  // null: the tiles are known when planning
  attention::Segments segments = {};     // of all launches
  // By whose tuned result it is planned; null: by that of `problem`.
  const Problem* step = nullptr;
};

// The key by which its result is looked up. Requires: it launches something.
tuned::ShapeKey key_of(const Subject& subject);

// A tuned result, and the choice that it makes.
struct TunedChoice {
  attention::Choice choice;
  tuned::TunedStore::Found found;
};

// A result of a relative of the device (tuned/device_key.h) is taken only where the pipe model
// predicts no more than this many times the time of the heuristic's choice for it here.
inline constexpr double kMostOverHeuristic = 1.05;

struct Choices {
  attention::Choice untuned;  // the configuration that the caller asked for, else the heuristic's
  std::optional<TunedChoice> tuned;  // tried first; may turn out not to work
};

// The configuration that the caller asked for, else the heuristic's. Throws as
// attention::choose_config and attention::forced_config do.
attention::Choice untuned(const Subject& subject, const attention::DeviceLimits& limits,
                          const PlanOptions& options);

// A tuned result is looked up only where the caller asked for no configuration, and only for
// problems that launch something. Throws as attention::choose_config and attention::forced_config
// do.
Choices choose(const Subject& subject, const attention::DeviceLimits& limits,
               const PlanOptions& options, tuned::TunedStore& tuned);

// Why a plan has the configuration of a result: "tuned, took 0.91 of the heuristic's time (of this
// very kind of problem); from /home/...".
std::string tuned_reason(const tuned::TunedStore::Found& found);

// The text for PlanInfo::tuned of a result that is used: its file, or "memory".
std::string origin_of(const tuned::TunedStore::Found& found);

// Called after planning with a tuned result failed: writes a line to the log, and forgets the
// result. Throws the error again where another configuration would fail with it too.
void give_up(const tuned::TunedStore::Found& found, const Error& error, tuned::TunedStore& tuned,
             const base::Log& log);

// Calls make(choice, tuned) with the tuned choice, and if that fails with the other one. `tuned` is
// origin_of() of the result that the choice comes from, or empty.
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
