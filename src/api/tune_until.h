#ifndef ANNULUS_API_TUNE_UNTIL_H_
#define ANNULUS_API_TUNE_UNTIL_H_

#include <functional>

#include "annulus/tune.h"

namespace annulus::autotune {
class Turns;
}

namespace annulus::api {

// What is tuned; it need not outlive the call.
struct TuneSubject {
  const Problem& problem;
  const Selection* selection = nullptr;  // null: none
};

// tune() that asks `cancelled` in place of TuneOptions::cancel, since a C caller's flag is no
// std::atomic<bool>.
TuneResult tune_until(const Device& device, const TuneSubject& subject, const TuneOptions& options,
                      const std::function<bool()>& cancelled);

std::vector<TuneResult> tune_batch_until(const Device& device, const BatchProblem& problem,
                                         const std::vector<StepRequests>& step,
                                         const TuneOptions& options,
                                         const std::function<bool()>& cancelled);

// The same as tune_until beside other work on the device.
struct Beside {
  autotune::Turns* turns = nullptr;  // when the device may be used; null: at any time
  int threads = 0;                   // of the oracle; 0: one per processor
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
