#ifndef ANNULUS_API_WARM_UNTIL_H_
#define ANNULUS_API_WARM_UNTIL_H_

#include <functional>

#include "annulus/kernels.h"

namespace annulus::api {

// warm() that asks `cancelled` in place of WarmOptions::cancel, since a C caller's flag is no
// std::atomic<bool>. It is asked from several threads at a time.
WarmResult warm_until(const WarmWork& work, const WarmOptions& options,
                      const std::function<bool()>& cancelled);

}  // namespace annulus::api

#endif  // ANNULUS_API_WARM_UNTIL_H_
