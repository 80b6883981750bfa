#ifndef ANNULUS_PLANNER_PREPARED_H_
#define ANNULUS_PLANNER_PREPARED_H_

// The result of planning: a problem that can be run, and its description.

#include <cstddef>
#include <optional>

#include "annulus/device.h"
#include "attention/run/branched_forward.h"
#include "device/launches.h"
#include "selection/selector.h"

namespace annulus::planner {

// Immutable. Any number of threads may run it at the same time.
struct Prepared {
  attention::BranchedForward forward;
  std::optional<selection::Selector> selector;  // only for a plan that chooses blocks
  PlanInfo info;
  // the context whose driver checks the memory of each run; null: no check
  device::ContextPointer checked_on;

  std::size_t workspace_bytes() const;

  // Puts the launches of a run into `to`: a stream for Plan::run, a list for Plan::bind. `buffers`
  // is null if the caller gave none. Throws as Plan::run does, before the first launch.
  void put(device::LaunchSink& to, const Operands& operands, void* workspace,
           const SelectionBuffers* buffers) const;
};

}  // namespace annulus::planner

#endif  // ANNULUS_PLANNER_PREPARED_H_
