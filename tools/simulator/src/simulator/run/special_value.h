#ifndef ANNULUS_SIMULATOR_RUN_SPECIAL_VALUE_H_
#define ANNULUS_SIMULATOR_RUN_SPECIAL_VALUE_H_

#include "simulator/machine/cta.h"
#include "simulator/run/launch.h"

namespace annulus::simulator {

// The value of a special register for a thread of a CTA. Requires: the CTA has its index.
std::uint32_t special_value(const Cta& cta, const LaunchRequest& request, Special special,
                            std::uint32_t thread);

}  // namespace annulus::simulator

#endif  // ANNULUS_SIMULATOR_RUN_SPECIAL_VALUE_H_
