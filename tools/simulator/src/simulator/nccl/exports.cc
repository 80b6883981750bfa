// The symbols of the simulated libnccl.so.2: every line of abi/nccl.def. They call functions of the
// simulated driver that the process has open, because it holds the ranks and the devices.

#include <string>

#include "abi/nccl_table.h"
#include "abi/parameters.h"
#include "abi/shared_library.h"
#include "annulus/simulator.h"

namespace {

using namespace annulus::abi;

template <typename Function>
Function* find(const char* symbol) {
  // The driver outlives the process's exit handlers, which may call this library.
  static std::string problem;
  static const auto* const driver = new SharedLibrary("libcuda.so.1", &problem);
  using Entry = int(const char*, void**);
  static auto* const entry = reinterpret_cast<Entry*>(driver->symbol("annulusSimulatorNcclEntry"));
  void* found = nullptr;
  if (entry != nullptr) entry(symbol, &found);
  return reinterpret_cast<Function*>(found);
}

// The return value of a function that NCCL of this version, or this driver, does not have.
template <typename Result>
Result absent();
template <>
NcclResult absent() {
  return kNcclInvalidUsage;
}
template <>
const char* absent() {
  return "not there";
}

}  // namespace

#define LINE(result, symbol, list) DEFINE(ANNULUS_COUNT list, result, symbol, list)
#define DEFINE(count, result, symbol, list) DEFINE_WITH(count, result, symbol, list)
#define DEFINE_WITH(count, result, symbol, list)                                    \
  extern "C" ANNULUS_EXPORT result symbol(ANNULUS_DECLARE_##count(result list)) {   \
    static auto* const function = find<result list>(#symbol);                       \
    return function != nullptr ? function(ANNULUS_PASS_##count) : absent<result>(); \
  }
#define REQUIRED(result, member, symbol, list) LINE(result, symbol, list)
#define OPTIONAL(result, member, symbol, list) LINE(result, symbol, list)
#include "abi/nccl.def"

extern "C" ANNULUS_EXPORT int annulusSimulatorNcclVersion(int* version) {
  if (version == nullptr) return kCudaInvalidValue;
  *version = ANNULUS_SIMULATOR_NCCL_VERSION;
  return kCudaSuccess;
}
