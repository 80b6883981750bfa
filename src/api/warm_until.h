#ifndef ANNULUS_API_WARM_UNTIL_H_
#define ANNULUS_API_WARM_UNTIL_H_

#include <functional>

#include "annulus/kernels.h"

namespace annulus::api {

// Like warm(), but it calls `cancelled` in place of reading WarmOptions::cancel, because a C
// caller's flag is not a std::atomic<bool>. Several threads may call `cancelled` at the same time.
WarmResult warm_until(const WarmWork& work, const WarmOptions& options,
                      const std::function<bool()>& cancelled);

}  // namespace annulus::api

#endif  // ANNULUS_API_WARM_UNTIL_H_
