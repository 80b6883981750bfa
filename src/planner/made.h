#ifndef ANNULUS_PLANNER_MADE_H_
#define ANNULUS_PLANNER_MADE_H_

// Plans with their kernels and lists on the device. Decides which configuration they finally have.

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
  std::vector<std::string> steps;  // the steps that were taken to need less memory
};

// The plans of a problem with one configuration, or with a general kernel. Uses no device.
FittedPlans plans_for(const Planner& planner, const Problem& problem, const PlanOptions& options,
                      const attention::Choice& choice, const attention::DeviceLimits& limits,
                      int max_kv_splits = 0, bool general = false);

// Throws Error{kUnsupported} if there is no general kernel for the problem.
Made make_general(const Planner& planner, const Request& request,
                  const attention::DeviceLimits& limits);

// Uses the first configuration whose kernel compiles: the tuned one, the heuristic's, the
// heuristic's next choice, a general kernel. Each configuration that fails is named once in the log
// and in Made::steps. If all fail, throws the error of the heuristic's first choice. An error that
// is not a compile error is thrown at once. A configuration that the caller requested is not
// replaced, and neither are the caller's own templates.
Made make_first_that_works(const Planner& planner, const Request& request, const Choices& choices,
                           const attention::DeviceLimits& limits);

}  // namespace annulus::planner

#endif  // ANNULUS_PLANNER_MADE_H_
