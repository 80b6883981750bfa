#ifndef ANNULUS_API_TUNE_UNTIL_H_
#define ANNULUS_API_TUNE_UNTIL_H_

#include <functional>

#include "annulus/tune.h"

namespace annulus::api {

// tune() that asks `cancelled` in place of TuneOptions::cancel, since a C caller's flag is no
// std::atomic<bool>.
TuneResult tune_until(const Device& device, const Problem& problem, const TuneOptions& options,
                      const std::function<bool()>& cancelled);

}  // namespace annulus::api

#endif  // ANNULUS_API_TUNE_UNTIL_H_
