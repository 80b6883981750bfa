// Finds entries of the driver by their names.

#include <string>
#include <string_view>

#include "simulator/driver/entries/absent.h"
#include "simulator/driver/entries/entries.h"
#include "simulator/driver/objects/state.h"

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

// The address of the entry with this name, or null. It is the address of the internal function. The
// loader may have replaced an exported function of the same name by a real driver's function.
void* find(std::string_view name) {
  static const Symbol symbols[] = {
#define ALIAS(name, symbol) {#symbol, address_of(&name)},
#define ENTRY(name, symbol, parameters) ALIAS(name, symbol)
#include "simulator/driver/entries/provided.def"
#define ABSENT(symbol) {#symbol, address_of(&absent::symbol)},
#include "simulator/driver/entries/absent.def"
  };
  for (const Symbol& symbol : symbols) {
    if (symbol.name == name) return symbol.address;
  }
  return nullptr;
}

struct Newer {
  std::string_view name;
  int since;
  std::string_view symbol;
};

// The symbol that a name means in a version of CUDA.
std::string_view symbol_of(std::string_view name, int cuda_version) {
  static constexpr Newer kNewer[] = {
#define NEWER(name, since, symbol) {#name, since, #symbol},
#include "simulator/driver/entries/versions.def"
  };
  std::string_view symbol = name;
  for (const Newer& newer : kNewer) {
    if (newer.name == name && newer.since <= cuda_version) symbol = newer.symbol;
  }
  return symbol;
}

// CUdriverProcAddress_flags and CUdriverProcAddressQueryResult
constexpr std::uint64_t kPerThreadDefaultStream = 2;
enum : int { kFound = 0, kSymbolNotFound = 1 };

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

// Programs pass names here that have no suffix of a version.
CUresult get_proc_address_v2(const char* symbol, void** function, int cuda_version,
                             std::uint64_t flags, int* status) {
  if (symbol == nullptr || function == nullptr) return kCudaInvalidValue;
  const std::string name(symbol_of(symbol, cuda_version));
  *function = nullptr;
  if ((flags & kPerThreadDefaultStream) != 0) {
    *function = find(name + "_ptsz");
    if (*function == nullptr) *function = find(name + "_ptds");
  }
  if (*function == nullptr) *function = find(name);
  const bool found = *function != nullptr;
  if (status != nullptr) *status = found ? kFound : kSymbolNotFound;
  return found || status != nullptr ? kCudaSuccess : kCudaNotFound;
}

}  // namespace annulus::simulator::driver::entry
