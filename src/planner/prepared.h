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

// Immutable; any number of threads may run it at a time.
struct Prepared {
  attention::BranchedForward forward;
  std::optional<selection::Selector> selector;  // of a plan that chooses blocks
  PlanInfo info;
  device::ContextPointer checked_on;  // asked about the memory of each run; null: not asked

  std::size_t workspace_bytes() const;

  // Puts the launches of a run into `to`: a stream for Plan::run, a list for Plan::bind. `buffers`
  // is null where the caller gave none. Throws as Plan::run, before the first launch.
  void put(device::LaunchSink& to, const Operands& operands, void* workspace,
           const SelectionBuffers* buffers) const;
};

}  // namespace annulus::planner

#endif  // ANNULUS_PLANNER_PREPARED_H_
