#ifndef ANNULUS_API_VERIFY_UNTIL_H_
#define ANNULUS_API_VERIFY_UNTIL_H_

#include <functional>

#include "annulus/tune.h"

namespace annulus::api {

// Like verify_tuned(), but it calls `cancelled` in place of reading TunedVerifyOptions::cancel,
// because a C caller's flag is not a std::atomic<bool>.
TunedReport verify_until(const Device& device, const TunedVerifyOptions& options,
                         const std::function<bool()>& cancelled);

}  // namespace annulus::api

#endif  // ANNULUS_API_VERIFY_UNTIL_H_
