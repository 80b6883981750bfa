#ifndef ANNULUS_SIMULATOR_MACHINE_COUNTS_H_
#define ANNULUS_SIMULATOR_MACHINE_COUNTS_H_

#include <array>
#include <cstddef>
#include <cstdint>

#include "simulator/program/program.h"

namespace annulus::simulator {

// The numbers that a CTA adds to the counters of its device.
struct Counts {
  std::array<std::uint64_t, static_cast<std::size_t>(Class::kCount)> by_class{};
#define CTA_COUNTER(name, meaning) std::uint64_t name = 0;
#include "annulus/counters.def"
};

}  // namespace annulus::simulator

#endif  // ANNULUS_SIMULATOR_MACHINE_COUNTS_H_
