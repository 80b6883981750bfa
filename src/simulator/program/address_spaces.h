#ifndef ANNULUS_SIMULATOR_PROGRAM_ADDRESS_SPACES_H_
#define ANNULUS_SIMULATOR_PROGRAM_ADDRESS_SPACES_H_

// Where the state spaces lie among the addresses of a kernel.

#include <cstdint>

namespace annulus::simulator {

// Generic addresses: global memory is where the host has it; the other spaces are windows at
// addresses no host pointer has.
constexpr std::uint64_t kSharedWindow = 0x0001'0000'0000'0000;
constexpr std::uint64_t kLocalWindow = 0x0002'0000'0000'0000;
constexpr std::uint64_t kParamWindow = 0x0003'0000'0000'0000;
constexpr std::uint64_t kWindowBytes = 0x0001'0000'0000'0000;

// Shared memory starts behind the kilobyte that the system reserves, so 0 is not a valid address.
constexpr std::uint32_t kSharedBase = 1024;

}  // namespace annulus::simulator

#endif  // ANNULUS_SIMULATOR_PROGRAM_ADDRESS_SPACES_H_
