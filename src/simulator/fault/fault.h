#ifndef ANNULUS_SIMULATOR_FAULT_FAULT_H_
#define ANNULUS_SIMULATOR_FAULT_FAULT_H_

// What a kernel, or two operations that nothing orders, did that a GPU would not define. A Fault is
// thrown by the instruction or the copy that found it, gets its place on the way up, and is caught
// once, where work runs. There it becomes a sticky CUDA code and a message.

#include <fmt/core.h>

#include <cstdint>
#include <exception>
#include <memory>
#include <string>
#include <utility>

namespace annulus::simulator {

struct Operation;

enum class FaultKind : int {
  kOutOfBounds,       // an address outside every live allocation, shared, local or param space
  kPeerAccess,        // an address on another device, which was not made a peer
  kMisaligned,        // an address that is no multiple of the access size
  kUninitialized,     // a read of memory or a register that nothing wrote
  kSharedRace,        // two accesses to shared memory, one a write, that nothing orders
  kGlobalRace,        // two such accesses to global memory by two blocks of a launch
  kMissingWait,       // an operation reads what an earlier one writes, and does not wait for it
  kEarlyReuse,        // an operation overwrites what an earlier one may still read
  kUnorderedWrites,   // two operations write the same bytes, and neither waits for the other
  kFreedInUse,        // memory freed while an operation may still use it
  kInFlight,          // an access to bytes that an asynchronous copy may still read or write
  kRegisterInFlight,  // an access to a register of a matrix product that was not waited for
  kMissingFence,      // fence.proxy.async or wgmma.fence left out
  kDivergentBarrier,  // a convergent instruction reached by a part of its lanes
  kDeadlock,          // no warp can go on
  kBarrierMisuse,     // a barrier used with other counts or more arrivals than it was made for
  kUnwaited,          // the CTA ended while an asynchronous effect of it was still in flight
  kInvalidOperand,    // an operand the instruction forbids (shuffle mask, descriptor, count, ...)
  kTrap,              // trap, or a failed device-side check
  kTimeout,           // more instructions than the launch was allowed
  kUnsupported,       // an instruction or form the simulator does not model
};

const char* to_string(FaultKind kind);  // "out of bounds", ...

struct Fault : std::exception {
  FaultKind kind{};
  std::string detail;  // what happened, with values
  std::string kernel;
  // The place in the source, where the PTX has line information: the innermost line that is not in
  // a folder named ptx, since a wrapper of one instruction is never at fault.
  std::string file;
  int line = 0;       // in that file; 0: unknown
  std::string trace;  // the chain of inlined lines, innermost first, where it has more than one
  int ptx_line = 0;
  std::string instruction;  // as PTX
  std::uint32_t block[3] = {0, 0, 0};
  int warp = -1;
  int lane = -1;  // the lowest lane concerned
  // For a race of two operations, the one that ran first. Its context is broken too.
  std::shared_ptr<const Operation> other;

  // One line with the kind and the detail, and where it was in a kernel: kernel, file:line, PTX
  // line, block, warp, lane.
  std::string message() const;
  // All members but `other`, and the message, as one JSON object.
  std::string json() const;
  const char* what() const noexcept override { return detail.c_str(); }
};

[[noreturn]] void raise(FaultKind kind, std::string detail, int lane = -1);

template <typename... Arguments>
[[noreturn]] void raise_at(FaultKind kind, int lane, fmt::format_string<Arguments...> format,
                           Arguments&&... arguments) {
  raise(kind, fmt::format(format, std::forward<Arguments>(arguments)...), lane);
}

}  // namespace annulus::simulator

#endif  // ANNULUS_SIMULATOR_FAULT_FAULT_H_
