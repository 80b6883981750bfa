#ifndef ANNULUS_EXCHANGE_NCCL_H_
#define ANNULUS_EXCHANGE_NCCL_H_

// NCCL as this library opens it, and its errors.

#include <limits>
#include <memory>
#include <source_location>
#include <string>

#include "abi/libraries.h"
#include "annulus/types.h"
#include "device/context.h"

namespace annulus::exchange {

using NcclPointer = std::shared_ptr<const abi::NcclLibrary>;

// The NCCL for a device: the simulator's where the simulator's own library has the device, else
// libnccl.so.2. Throws Error{kLibrary} where there is none, or where only one of device and NCCL is
// simulated.
NcclPointer open_nccl(const device::Context& context, bool own_simulator);

// ncclConfig_t up to the members that are set here. NCCL takes as many bytes as `size` says.
struct Settings {
  std::size_t size = sizeof(Settings);
  unsigned magic = 0xcafebeef;
  unsigned version = 21700;  // of the header that has these members; older ones have the first
  int blocking = 1;
  int cga_cluster_size = kUndefined;
  int min_ctas = kUndefined;
  int max_ctas = kUndefined;

  static constexpr int kUndefined = std::numeric_limits<int>::min();  // NCCL chooses

  abi::NcclConfig* config() { return reinterpret_cast<abi::NcclConfig*>(this); }
};

// "ncclGroupEnd returned remote process exited (6); NCCL's last message: ...". NCCL keeps the last
// message of any call of the process, so it may be older than this error.
std::string text_of(const abi::NcclTable& table, abi::NcclResult code, const char* call);

// What an error of NCCL is for the caller of the library.
ErrorCode error_of(abi::NcclResult code);

}  // namespace annulus::exchange

#endif  // ANNULUS_EXCHANGE_NCCL_H_
