#ifndef ANNULUS_SIMULATOR_FAULT_FAULT_H_
#define ANNULUS_SIMULATOR_FAULT_FAULT_H_

// A kernel, or two unordered operations, did something that is undefined on a GPU. The instruction
// or copy that finds it throws a Fault. The Fault gets its place on the way up, and is caught once,
// where work runs. There it becomes a sticky CUDA code and a message.

#include <fmt/core.h>

#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "annulus/simulator.h"

namespace annulus::simulator {

struct Operation;

enum class FaultKind : int {
  kOutOfBounds,         // an address outside every live allocation or shared, local or param space
  kPeerAccess,          // an address on another device, which was not made a peer
  kMisaligned,          // an address that is not a multiple of the access size
  kUninitialized,       // a read of memory or a register that was never written
  kSharedRace,          // two unordered accesses to shared memory, one of them a write
  kGlobalRace,          // two such accesses to global memory by threads of one launch
  kMissingWait,         // an operation reads what an earlier one writes, and does not wait for it
  kEarlyReuse,          // an operation overwrites what an earlier one may still read
  kUnorderedWrites,     // two operations write the same bytes, and neither waits for the other
  kFreedInUse,          // memory is freed while an operation may still use it
  kInFlight,            // an access to bytes that an asynchronous copy may still read or write
  kRegisterInFlight,    // an access to a register of a matrix product before the wait for it
  kMissingFence,        // fence.proxy.async or wgmma.fence is missing
  kDivergentBarrier,    // only a part of the lanes reaches an instruction that needs all of them
  kDeadlock,            // no warp can continue
  kBarrierMisuse,       // a barrier is used with a wrong count or with too many arrivals
  kUnwaited,            // the CTA ended while one of its asynchronous operations was in flight
  kInvalidOperand,      // an operand that the instruction forbids (shuffle mask, descriptor, count,
                        // ...)
  kTrap,                // trap, or a failed device-side check
  kTimeout,             // more instructions than the limit of the launch
  kUnsupported,         // an instruction or form that the simulator does not support
  kAssert,              // an assert of the kernel failed
  kMessageMismatch,     // the two sides of a message between ranks, or of a collective call, differ
  kEarlyWork,           // other work comes between NCCL's call and the work that it queues
  kSharedCommunicator,  // two threads called NCCL with one communicator at the same time
};

const char* to_string(FaultKind kind);  // "out of bounds", ...
// The kind with this name. Returns no value if there is none.
std::optional<FaultKind> fault_kind(std::string_view name);

// A set of kinds, as bits (SimulatorOptions::ignored).
using FaultKinds = std::uint64_t;
constexpr FaultKinds bit(FaultKind kind) { return FaultKinds{1} << static_cast<int>(kind); }
// The kinds after which a run can continue. A GPU continues after them too, with an answer that may
// be wrong. After other kinds a GPU stops, or its behaviour is undefined.
constexpr FaultKinds kCanBeIgnored =
    bit(FaultKind::kUninitialized) | bit(FaultKind::kSharedRace) | bit(FaultKind::kGlobalRace) |
    bit(FaultKind::kMissingWait) | bit(FaultKind::kEarlyReuse) | bit(FaultKind::kUnorderedWrites) |
    bit(FaultKind::kFreedInUse) | bit(FaultKind::kInFlight) | bit(FaultKind::kRegisterInFlight) |
    bit(FaultKind::kMissingFence) | bit(FaultKind::kUnwaited);
// The numbers have to be equal to those in annulus/simulator.h.
static_assert(bit(FaultKind::kUninitialized) == ANNULUS_SIMULATOR_IGNORE_UNINITIALISED_READ);
static_assert(bit(FaultKind::kSharedRace) == ANNULUS_SIMULATOR_IGNORE_SHARED_MEMORY_RACE);
static_assert(bit(FaultKind::kGlobalRace) == ANNULUS_SIMULATOR_IGNORE_GLOBAL_MEMORY_RACE);
static_assert(bit(FaultKind::kMissingWait) == ANNULUS_SIMULATOR_IGNORE_MISSING_WAIT);
static_assert(bit(FaultKind::kEarlyReuse) == ANNULUS_SIMULATOR_IGNORE_EARLY_REUSE);
static_assert(bit(FaultKind::kUnorderedWrites) == ANNULUS_SIMULATOR_IGNORE_UNORDERED_WRITES);
static_assert(bit(FaultKind::kFreedInUse) == ANNULUS_SIMULATOR_IGNORE_FREED_IN_USE);
static_assert(bit(FaultKind::kInFlight) == ANNULUS_SIMULATOR_IGNORE_BYTES_IN_FLIGHT);
static_assert(bit(FaultKind::kRegisterInFlight) == ANNULUS_SIMULATOR_IGNORE_REGISTER_IN_FLIGHT);
static_assert(bit(FaultKind::kMissingFence) == ANNULUS_SIMULATOR_IGNORE_MISSING_FENCE);
static_assert(bit(FaultKind::kUnwaited) == ANNULUS_SIMULATOR_IGNORE_UNWAITED);

// As long as an object exists, its thread ignores faults of these kinds. A thread has at most one
// object.
class IgnoredFaults {
 public:
  explicit IgnoredFaults(FaultKinds kinds);
  ~IgnoredFaults();
  IgnoredFaults(const IgnoredFaults&) = delete;
  IgnoredFaults& operator=(const IgnoredFaults&) = delete;

 private:
  const FaultKinds before_;
};
bool is_ignored(FaultKind kind);  // on the calling thread

struct Fault : std::exception {
  FaultKind kind{};
  std::string detail;  // a description with values
  std::string kernel;
  // The place in the source, if the PTX has line information. It is the innermost line that is not
  // in a folder named ptx, because a wrapper of one instruction is never the cause.
  std::string file;
  int line = 0;       // in that file; 0: unknown
  std::string trace;  // the chain of inlined lines, innermost first, if there are several
  int ptx_line = 0;
  std::string instruction;  // its PTX text
  std::uint32_t block[3] = {0, 0, 0};
  int warp = -1;
  int lane = -1;  // the lowest of the lanes concerned
  // For a race of two operations: the operation that ran first. Its context is broken too.
  std::shared_ptr<const Operation> other;

  // One line with the kind, the detail and the place in a kernel: kernel, file:line, PTX line,
  // block, warp, lane.
  std::string message() const;
  // All members but `other`, and the message, as one JSON object.
  std::string json() const;
  const char* what() const noexcept override { return detail.c_str(); }
};

[[noreturn]] void raise(FaultKind kind, std::string detail, int lane = -1);
// Throws the fault, unless its kind is ignored. It is for faults after which the caller can
// continue.
void report(const Fault& fault);

template <typename... Arguments>
[[noreturn]] void raise_at(FaultKind kind, int lane, fmt::format_string<Arguments...> format,
                           Arguments&&... arguments) {
  raise(kind, fmt::format(format, std::forward<Arguments>(arguments)...), lane);
}

// Like raise_at, for faults after which the caller can continue: it returns if the kind is ignored.
template <typename... Arguments>
void report_at(FaultKind kind, int lane, fmt::format_string<Arguments...> format,
               Arguments&&... arguments) {
  if (is_ignored(kind)) return;
  raise(kind, fmt::format(format, std::forward<Arguments>(arguments)...), lane);
}

}  // namespace annulus::simulator

#endif  // ANNULUS_SIMULATOR_FAULT_FAULT_H_
