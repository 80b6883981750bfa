#ifndef ANNULUS_API_TUNE_UNTIL_H_
#define ANNULUS_API_TUNE_UNTIL_H_

#include <functional>

#include "annulus/tune.h"

namespace annulus::autotune {
class Turns;
}

namespace annulus::api {

// The subject of a search. It need not outlive the call.
struct TuneSubject {
  const Problem& problem;
  const Selection* selection = nullptr;  // null: none
};

// Like tune(), but it calls `cancelled` in place of reading TuneOptions::cancel, because a C
// caller's flag is not a std::atomic<bool>.
TuneResult tune_until(const Device& device, const TuneSubject& subject, const TuneOptions& options,
                      const std::function<bool()>& cancelled);

std::vector<TuneResult> tune_batch_until(const Device& device, const BatchProblem& problem,
                                         const std::vector<StepRequests>& step,
                                         const TuneOptions& options,
                                         const std::function<bool()>& cancelled);

// Options of a search that runs while other work uses the device.
struct Beside {
  autotune::Turns* turns = nullptr;  // the times at which the device may be used; null: any time
  int threads = 0;                   // threads of the oracle; 0: one per processor
};
TuneResult tune_on(const Device::Impl& device, const TuneSubject& subject,
                   const TuneOptions& options, const std::function<bool()>& cancelled,
                   const Beside& beside);
std::vector<TuneResult> tune_batch_on(const Device::Impl& device, const BatchProblem& problem,
                                      const std::vector<StepRequests>& step,
                                      const TuneOptions& options,
                                      const std::function<bool()>& cancelled, const Beside& beside);

}  // namespace annulus::api

#endif  // ANNULUS_API_TUNE_UNTIL_H_
