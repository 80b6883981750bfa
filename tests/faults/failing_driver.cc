// A libannulus_simulator.so whose calls can fail on request. It passes all other calls to the real
// library, ANNULUS_SIMULATOR_FILE, and counts the objects that the driver holds for its caller.

#include <dlfcn.h>

#include <cstdlib>
#include <cstring>
#include <string_view>
#include <type_traits>

#include "abi/cuda_table.h"
#include "faults/failing_calls.h"

namespace {

using namespace annulus;
using abi::CudaTable;
using abi::CUresult;
using test::Held;

struct Real {
  Real() {
    void* const library = dlopen(ANNULUS_SIMULATOR_FILE, RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) std::abort();
    const auto put = [](void* address, auto* slot) {
      if (address == nullptr) std::abort();
      std::memcpy(slot, &address, sizeof(address));
    };
    put(dlsym(library, "annulusSimulatorEntry"), &table.simulator_entry);
    const auto entry = [&](const char* name) {
      void* address = nullptr;
      return table.simulator_entry(name, &address) == 0 ? address : nullptr;
    };
#define SLOT(member, symbol, parameters) put(entry(#symbol), &table.member);
#include "abi/cuda.def"
  }
  CudaTable table;
};
const CudaTable& real() {
  static const Real only;
  return only.table;
}
test::FailingCalls calls;

// The objects that a successful call made or released.
struct Holding {
  const char* symbol;
  Held kind;
  long count;
};
constexpr Holding kHoldings[] = {{"cuDevicePrimaryCtxRetain", Held::kContexts, 1},
                                 {"cuDevicePrimaryCtxRelease_v2", Held::kContexts, -1},
                                 {"cuStreamCreate", Held::kStreams, 1},
                                 {"cuStreamDestroy_v2", Held::kStreams, -1},
                                 {"cuEventCreate", Held::kEvents, 1},
                                 {"cuEventDestroy_v2", Held::kEvents, -1},
                                 {"cuModuleLoadData", Held::kModules, 1},
                                 {"cuModuleUnload", Held::kModules, -1},
                                 {"cuMemAlloc_v2", Held::kAllocations, 1},
                                 {"cuMemFree_v2", Held::kAllocations, -1},
                                 {"cuMemAllocHost_v2", Held::kHostBlocks, 1},
                                 {"cuMemFreeHost", Held::kHostBlocks, -1}};

enum class Slot {
#define SLOT(member, symbol, parameters) member,
#include "abi/cuda.def"
};
constexpr const char* kSymbols[] = {
#define SLOT(member, symbol, parameters) #symbol,
#include "abi/cuda.def"
};

template <auto kMember, Slot kSlot>
struct Call {
  template <typename... Parameters>
  static std::type_identity_t<CUresult (*)(Parameters...)> wrapped(CUresult (*)(Parameters...)) {
    return [](Parameters... parameters) -> CUresult {
      constexpr const char* kSymbol = kSymbols[static_cast<int>(kSlot)];
      int code = 0;
      // These two describe errors, so they never fail.
      constexpr bool kDescribes = kSlot == Slot::get_error_name || kSlot == Slot::get_error_string;
      if (!kDescribes && calls.fails(kSymbol, &code)) return code;
      const CUresult result = (real().*kMember)(parameters...);
      if (result == abi::kCudaSuccess) {
        for (const Holding& each : kHoldings) {
          if (std::string_view(each.symbol) == kSymbol) calls.add(each.kind, each.count);
        }
      }
      return result;
    };
  }
};

}  // namespace

extern "C" __attribute__((visibility("default"))) int annulusSimulatorVersion(int* version) {
  return real().simulator_version(version);
}

extern "C" __attribute__((visibility("default"))) int annulusSimulatorEntry(const char* name,
                                                                            void** entry) {
  const std::string_view wanted = name;
  if (wanted == test::kFailingDriver) {
    *entry = &calls;
    return abi::kCudaSuccess;
  }
  // The library's own function, through which a program finds the entry above.
  if (wanted == "annulusSimulatorEntry") {
    const auto self = &annulusSimulatorEntry;
    std::memcpy(entry, &self, sizeof(self));
    return abi::kCudaSuccess;
  }
#define SLOT(member, symbol, parameters)                                              \
  if (wanted == #symbol) {                                                            \
    const auto call = Call<&CudaTable::member, Slot::member>::wrapped(real().member); \
    std::memcpy(entry, &call, sizeof(call));                                          \
    return abi::kCudaSuccess;                                                         \
  }
#include "abi/cuda.def"
  return real().simulator_entry(name, entry);
}
