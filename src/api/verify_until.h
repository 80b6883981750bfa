#ifndef ANNULUS_API_VERIFY_UNTIL_H_
#define ANNULUS_API_VERIFY_UNTIL_H_

#include <functional>

#include "annulus/tune.h"

namespace annulus::api {

// verify_tuned() that asks `cancelled` in place of TunedVerifyOptions::cancel, since a C caller's
// flag is no std::atomic<bool>.
TunedReport verify_until(const Device& device, const TunedVerifyOptions& options,
                         const std::function<bool()>& cancelled);

}  // namespace annulus::api

#endif  // ANNULUS_API_VERIFY_UNTIL_H_
