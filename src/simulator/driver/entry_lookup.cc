// Finds entries of the driver by their names.

#include <string_view>

#include "simulator/driver/entries.h"
#include "simulator/driver/state.h"

namespace annulus::simulator::driver::entry {
namespace {

struct Symbol {
  std::string_view name;
  void* address;
};

template <typename Function>
void* address_of(Function* function) {
  return reinterpret_cast<void*>(function);
}

// The entry of this name, or null. The addresses are those of the entries themselves, never those
// of exported functions of the same name, which the loader may have replaced by a real driver's.
void* find(std::string_view name) {
  static const Symbol symbols[] = {
#define ALIAS(name, symbol) {#symbol, address_of(&name)},
#define ENTRY(name, symbol, parameters) ALIAS(name, symbol)
#include "simulator/driver/provided.def"
  };
  for (const Symbol& symbol : symbols) {
    if (symbol.name == name) return symbol.address;
  }
  return nullptr;
}

}  // namespace

CUresult simulator_entry(const char* name, void** entry) {
  if (name == nullptr || entry == nullptr) return kCudaInvalidValue;
  *entry = find(name);
  return *entry != nullptr ? kCudaSuccess : kCudaNotFound;
}

CUresult get_proc_address(const char* symbol, void** function, int cuda_version,
                          std::uint64_t flags) {
  return get_proc_address_v2(symbol, function, cuda_version, flags, nullptr);
}

// Programs ask for names without _v2 here. *status, if it is not null, becomes 0 (found) or 1 (not
// found).
CUresult get_proc_address_v2(const char* symbol, void** function, int cuda_version, std::uint64_t,
                             int* status) {
  if (symbol == nullptr || function == nullptr) return kCudaInvalidValue;
  std::string_view name = symbol;
  // These two functions have other parameters in older versions of CUDA.
  if (name == "cuCtxCreate" && cuda_version >= 13000) name = "cuCtxCreate_v4";
  if (name == "cuGetProcAddress" && cuda_version >= 12000) name = "cuGetProcAddress_v2";
  *function = find(name);
  const bool found = *function != nullptr;
  if (status != nullptr) *status = found ? 0 : 1;
  return found || status != nullptr ? kCudaSuccess : kCudaNotFound;
}

}  // namespace annulus::simulator::driver::entry
