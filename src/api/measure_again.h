#ifndef ANNULUS_API_MEASURE_AGAIN_H_
#define ANNULUS_API_MEASURE_AGAIN_H_

#include <cstdint>
#include <functional>

#include "annulus/tune.h"
#include "tuned/entry.h"

namespace annulus::api {

// Measures an entry's configuration against the heuristic's choice on a device, as tune() does, and
// reports whether the entry still holds. Entries that cannot be measured on this device are
// kNotMeasured. Throws as tune(), and Error{kCancelled}.
TunedNote measure_again(const Device& device, const tuned::Entry& entry, std::uint64_t seed,
                        const std::function<bool()>& cancelled);

}  // namespace annulus::api

#endif  // ANNULUS_API_MEASURE_AGAIN_H_
