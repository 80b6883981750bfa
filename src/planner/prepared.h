#ifndef ANNULUS_PLANNER_PREPARED_H_
#define ANNULUS_PLANNER_PREPARED_H_

// What planning ends with: a problem that can be run, and what is told of it.

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

  std::size_t workspace_bytes() const;

  // The launches of a run; onto a stream they are Plan::run, into a list Plan::bind. buffers: null
  // where the caller gave none. Throws as Plan::run, before the first launch.
  void put(device::LaunchSink& to, const Operands& operands, void* workspace,
           const SelectionBuffers* buffers) const;
};

}  // namespace annulus::planner

#endif  // ANNULUS_PLANNER_PREPARED_H_
