#ifndef ANNULUS_PLANNER_MADE_H_
#define ANNULUS_PLANNER_MADE_H_

// Plans with their kernels and lists on the device, and which configuration they have in the end.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "planner/choices.h"
#include "planner/fit.h"
#include "planner/planner.h"

namespace annulus::planner {

struct Made {
  attention::BranchedForward forward;
  std::optional<selection::Selector> selector;
  std::string tuned;
  double compile_ms = 0;
  std::vector<std::string> steps;  // to need less memory
};

// The plans of a problem with one configuration, or of a general kernel. Touches no device.
FittedPlans plans_for(const Planner& planner, const Problem& problem, const PlanOptions& options,
                      const attention::Choice& choice, const attention::DeviceLimits& limits,
                      int max_kv_splits = 0, bool general = false);

// Throws Error{kUnsupported} where there is no general kernel for the problem.
Made make_general(const Planner& planner, const Request& request,
                  const attention::DeviceLimits& limits);

// With the first configuration whose kernel compiles: the tuned one, the heuristic's, its next
// choice, a general kernel. Each that does not is named once in the log, and in Made::steps. Throws
// what the heuristic's own choice threw where none does, and the first error that is not NVRTC's. A
// configuration that the caller asked for is not replaced, nor are the caller's own templates.
Made make_first_that_works(const Planner& planner, const Request& request, const Choices& choices,
                           const attention::DeviceLimits& limits);

}  // namespace annulus::planner

#endif  // ANNULUS_PLANNER_MADE_H_
