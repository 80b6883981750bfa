// Turns a fault into the code that later calls return, and into the message of the device.

#include <new>

#include "simulator/driver/objects/console.h"
#include "simulator/driver/objects/state.h"

namespace annulus::simulator::driver {
namespace {

abi::CUresult code_of(FaultKind kind) {
  switch (kind) {
    case FaultKind::kOutOfBounds:
    case FaultKind::kPeerAccess:
      return abi::kCudaIllegalAddress;
    case FaultKind::kMisaligned:
      return abi::kCudaMisalignedAddress;
    case FaultKind::kInvalidOperand:
    case FaultKind::kUnsupported:
      return abi::kCudaIllegalInstruction;
    case FaultKind::kDeadlock:
    case FaultKind::kTimeout:
      return abi::kCudaLaunchTimeout;
    case FaultKind::kAssert:
      return abi::kCudaAssert;
    // With these faults a GPU would continue with a wrong answer, or hang.
    case FaultKind::kUninitialized:
    case FaultKind::kSharedRace:
    case FaultKind::kGlobalRace:
    case FaultKind::kMissingWait:
    case FaultKind::kEarlyReuse:
    case FaultKind::kUnorderedWrites:
    case FaultKind::kFreedInUse:
    case FaultKind::kInFlight:
    case FaultKind::kRegisterInFlight:
    case FaultKind::kMissingFence:
    case FaultKind::kDivergentBarrier:
    case FaultKind::kBarrierMisuse:
    case FaultKind::kUnwaited:
    case FaultKind::kTrap:
    case FaultKind::kMessageMismatch:
    case FaultKind::kEarlyWork:
    case FaultKind::kSharedCommunicator:
      return abi::kCudaLaunchFailed;
  }
  return abi::kCudaLaunchFailed;
}

}  // namespace

void break_context(Context& context, const Fault& fault) {
  // Faults that the options ignore can still reach this function if the host found them.
  if ((context.device->options().ignored & bit(fault.kind)) != 0) return;
  const auto other = fault.other == nullptr
                         ? nullptr
                         : std::static_pointer_cast<Context>(fault.other->context.lock());
  if (fault.kind == FaultKind::kAssert) write_stderr(fault.detail + "\n");
  // A race breaks the context of the other operation too. Then calls in both contexts return the
  // race, in whichever order the two operations ran.
  for (Context* one : {&context, other.get()}) {
    if (one == nullptr || one->lost == abi::kCudaContextDestroyed) continue;
    one->lost = code_of(fault.kind);
    try {
      one->device->report(base::LogLevel::kError, fault.message(), fault.json());
    } catch (const std::bad_alloc&) {
      // There is no memory left for a message that names the place, so only the code reports the
      // fault.
    }
  }
}

}  // namespace annulus::simulator::driver
