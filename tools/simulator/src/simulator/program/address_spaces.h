#ifndef ANNULUS_SIMULATOR_PROGRAM_ADDRESS_SPACES_H_
#define ANNULUS_SIMULATOR_PROGRAM_ADDRESS_SPACES_H_

// The addresses of the state spaces of a kernel.

#include <cstdint>

namespace annulus::simulator {

// Generic addresses. A global address is the host's address of the byte. The other spaces are
// windows at addresses that no host pointer has, because pointers of an x86-64 program are below
// 2^47.
constexpr std::uint64_t kSharedWindow = 0x0001'0000'0000'0000;
constexpr std::uint64_t kLocalWindow = 0x0002'0000'0000'0000;
constexpr std::uint64_t kParamWindow = 0x0003'0000'0000'0000;
constexpr std::uint64_t kWindowBytes = 0x0001'0000'0000'0000;

// Functions have addresses too, which no access may use: this one and every sixteenth after it.
constexpr std::uint64_t kFunctionWindow = 0x0004'0000'0000'0000;

// Shared memory starts after the kilobyte that CUDA reserves in each CTA, so 0 is not a valid
// address.
constexpr std::uint32_t kSharedBase = 1024;

}  // namespace annulus::simulator

#endif  // ANNULUS_SIMULATOR_PROGRAM_ADDRESS_SPACES_H_
