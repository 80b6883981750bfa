#include "simulator/nccl/interface.h"

#include <algorithm>
#include <cstring>

#include "simulator/nccl/communicator.h"
#include "simulator/nccl/entries.h"
#include "simulator/nccl/options.h"

namespace annulus::simulator::nccl {

int interface_version(int* version) {
  if (version == nullptr) return abi::kCudaInvalidValue;
  *version = ANNULUS_SIMULATOR_NCCL_VERSION;
  return abi::kCudaSuccess;
}

int interface_entry(const char* name, void** entry) {
  if (name == nullptr || entry == nullptr) return abi::kCudaInvalidValue;
  *entry = find_entry(name);
  return *entry != nullptr ? abi::kCudaSuccess : abi::kCudaNotFound;
}

int interface_set_options(const annulus_simulator_nccl_options* given) {
  constexpr unsigned kOldest = 21400;
  if (given == nullptr || given->struct_size < sizeof(given->struct_size)) {
    return abi::kCudaInvalidValue;
  }
  const auto* const bytes = reinterpret_cast<const unsigned char*>(given);
  for (std::size_t i = sizeof(Options); i < given->struct_size; ++i) {
    if (bytes[i] != 0) return abi::kCudaInvalidValue;
  }
  Options all = options();
  annulus_simulator_nccl_options& plain = all;
  std::memcpy(&plain, given, std::min<std::size_t>(given->struct_size, sizeof(plain)));
  all.struct_size = sizeof(annulus_simulator_nccl_options);
  const bool ends = std::memchr(all.fail_function, 0, sizeof(all.fail_function)) != nullptr;
  if (all.version < kOldest || !ends) return abi::kCudaInvalidValue;
  set_options(all);
  return abi::kCudaSuccess;
}

int interface_cut(int rank, int peer) {
  bool any = false;
  for (const CommunicatorPointer& one : communicators().all()) {
    if (one->rank() == rank && one->cut(peer)) any = true;
  }
  return any ? abi::kCudaSuccess : abi::kCudaNotFound;
}

int interface_counters(annulus_simulator_nccl_counters* given, int clear) {
  if (given == nullptr || given->struct_size < sizeof(given->struct_size)) {
    return abi::kCudaInvalidValue;
  }
  annulus_simulator_nccl_counters now = counters(clear != 0);
  now.struct_size = given->struct_size;
  std::memcpy(given, &now, std::min<std::size_t>(given->struct_size, sizeof(now)));
  return abi::kCudaSuccess;
}

}  // namespace annulus::simulator::nccl
