#ifndef ANNULUS_EXCHANGE_NCCL_H_
#define ANNULUS_EXCHANGE_NCCL_H_

// Opens NCCL for a device, and translates NCCL's errors.

#include <limits>
#include <memory>
#include <source_location>
#include <string>

#include "abi/libraries.h"
#include "annulus/types.h"
#include "device/context.h"

namespace annulus::exchange {

using NcclPointer = std::shared_ptr<const abi::NcclLibrary>;

// Opens the NCCL for a device: the simulator's NCCL if the simulator's own library has the device,
// else libnccl.so.2. Throws Error{kLibrary} if NCCL is not found, or if only one of device and NCCL
// is simulated.
NcclPointer open_nccl(const device::Context& context, bool own_simulator);

// The members of ncclConfig_t up to the last one that is set here. NCCL reads `size` bytes of it.
struct Settings {
  std::size_t size = sizeof(Settings);
  unsigned magic = 0xcafebeef;
  // the version whose header has these members; older headers have only the first ones
  unsigned version = 21700;
  int blocking = 1;
  int cga_cluster_size = kUndefined;
  int min_ctas = kUndefined;
  int max_ctas = kUndefined;

  static constexpr int kUndefined = std::numeric_limits<int>::min();  // means that NCCL chooses

  abi::NcclConfig* config() { return reinterpret_cast<abi::NcclConfig*>(this); }
};

// For example "ncclGroupEnd returned remote process exited (6); NCCL's last message: ...". NCCL
// keeps the last message of any call of the process, so it may be older than this error.
std::string text_of(const abi::NcclTable& table, abi::NcclResult code, const char* call);

// The error code of this library for an error code of NCCL.
ErrorCode error_of(abi::NcclResult code);

}  // namespace annulus::exchange

#endif  // ANNULUS_EXCHANGE_NCCL_H_
