#ifndef ANNULUS_SIMULATOR_PROGRAM_LANES_H_
#define ANNULUS_SIMULATOR_PROGRAM_LANES_H_

// The lanes of a warp as bits of a mask.

#include <fmt/core.h>

#include <cstdint>
#include <string>

namespace annulus::simulator {

using Mask = std::uint32_t;  // one bit per lane
constexpr int kLanes = 32;
constexpr Mask kFull = 0xffffffffu;

inline int lowest_lane(Mask mask) { return __builtin_ctz(mask); }

inline std::string lanes_text(Mask mask) { return fmt::format("{:#010x}", mask); }

}  // namespace annulus::simulator

#endif  // ANNULUS_SIMULATOR_PROGRAM_LANES_H_
