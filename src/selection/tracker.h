#ifndef ANNULUS_SELECTION_TRACKER_H_
#define ANNULUS_SELECTION_TRACKER_H_

// Measures the attention that each kept block received, and changes the set of kept blocks
// (annulus/selection.h). It uses two selectors: one lists the kept blocks for the measuring kernel,
// and one scores all blocks for the update.

#include "annulus/selection.h"
#include "attention/run/forward.h"
#include "selection/selector.h"

namespace annulus::selection {

// Throws the errors that the constructor of ImportanceTracker lists.
void validate(const Problem& problem, const Selection& selection, const TrackerOptions& options);

// The plan of the measuring kernel. Its tiles are 64 x 64, whatever tiles the attention itself has.
attention::LaunchPlan make_measure_plan(const Problem& problem, const Selection& selection,
                                        const attention::DeviceLimits& limits);

class Tracker {
 public:
  Tracker(const device::ContextPointer& context, jit::KernelCache& kernels,
          const attention::DeviceLimits& limits, const Problem& problem, const Selection& selection,
          const TrackerOptions& options);

  std::int64_t state_bytes() const;
  std::int64_t workspace_bytes() const;

  void measure(abi::CUstream stream, const Operands& operands, const std::int32_t* given,
               void* state, void* workspace) const;
  void update(abi::CUstream stream, const Operands& operands, std::int32_t* given, void* state,
              void* workspace) const;

 private:
  void check(const Operands& operands, const void* given, const void* state,
             const void* workspace) const;

  Problem problem_;
  TrackerOptions options_;
  attention::Forward forward_;  // launches the measuring kernel in place of the attention's
  Selector kept_;               // rule kGiven
  Selector scored_;             // rule kTopK, with blocks of the same sizes
  device::Function update_;
};

}  // namespace annulus::selection

#endif  // ANNULUS_SELECTION_TRACKER_H_
