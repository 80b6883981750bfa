// The library's side of NVTX version 3 (NVIDIA Tools Extension, the headers nvtx3/nvToolsExt.h and
// nvtx3/nvtxDetail/nvtxTypes.h of the CUDA toolkit), without these headers. The profiler's library
// exports InitializeInjectionNvtx2, which receives a function that returns tables. The profiler
// writes its own functions into the slots that a table points to. Slots that it does not set stay
// null.
#include "abi/nvtx.h"

#include <fmt/core.h>

#include <cstddef>
#include <cstdint>
#include <mutex>

#include "abi/shared_library.h"
#include "base/span.h"

namespace annulus::abi {
namespace {

constexpr std::uint32_t kNvtxVersion = 3;

using Function = void (*)();

// NvtxCallbackModule, and the number of functions of each module. Function 0 is counted but does
// not exist.
enum Module : unsigned { kCore = 1, kCore2 = 5, kModules = 7 };
constexpr unsigned kFunctions[kModules] = {0, 16, 9, 15, 7, 16, 7};
constexpr unsigned kMaxFunctions = 16;

// NvtxCallbackIdCore2
enum : unsigned { kRangePushEx = 4, kRangePop = 5, kDomainCreateA = 12 };

// nvtxEventAttributes_v2
struct EventAttributes {
  std::uint16_t version = kNvtxVersion;
  std::uint16_t size = sizeof(EventAttributes);
  std::uint32_t category = 0;
  std::int32_t color_type = 0;
  std::uint32_t color = 0;
  std::int32_t payload_type = 0;
  std::int32_t reserved = 0;
  std::uint64_t payload = 0;
  std::int32_t message_type = 1;  // NVTX_MESSAGE_TYPE_ASCII
  const char* message = nullptr;
};
static_assert(sizeof(EventAttributes) == 48 && offsetof(EventAttributes, message) == 40);

struct CallbackTable {
  std::size_t bytes;
  int (*module_functions)(unsigned module, Function*** table, unsigned* functions);
};

struct VersionTable {
  std::size_t bytes;
  std::uint32_t version;
  std::uint32_t reserved;
  void (*set_injection_version)(std::uint32_t version);
};

// The functions that the profiler sets, and the pointers to them in the form of its tables, which
// end with a null pointer.
Function slots[kModules][kMaxFunctions];
Function* pointers[kModules][kMaxFunctions + 1];

int module_functions(unsigned module, Function*** table, unsigned* functions) {
  if (module == 0 || module >= kModules) return 0;
  if (functions != nullptr) *functions = kFunctions[module];
  if (table != nullptr) *table = pointers[module];
  return 1;
}

const void* export_table(std::uint32_t table) {
  static const CallbackTable callbacks = {sizeof(CallbackTable), module_functions};
  static const VersionTable version = {sizeof(VersionTable), kNvtxVersion, 0, [](std::uint32_t) {}};
  switch (table) {
    case 1:  // NVTX_ETID_CALLBACKS
      return &callbacks;
    case 3:  // NVTX_ETID_VERSIONINFO
      return &version;
    default:
      return nullptr;
  }
}

void* domain = nullptr;

void push(const char* text) {
  EventAttributes attributes;
  attributes.message = text;
  reinterpret_cast<int (*)(void*, const EventAttributes*)>(slots[kCore2][kRangePushEx])(
      domain, &attributes);
}

void pop() { reinterpret_cast<int (*)(void*)>(slots[kCore2][kRangePop])(domain); }

std::string open(const std::string& path) {
  std::string problem;
  const SharedLibrary library(path, &problem);
  if (!library) return problem;
  const auto initialize = reinterpret_cast<int (*)(const void* (*)(std::uint32_t))>(
      library.symbol("InitializeInjectionNvtx2"));
  if (initialize == nullptr) return "it has no function InitializeInjectionNvtx2";
  for (unsigned module = 1; module < kModules; ++module) {
    for (unsigned i = 1; i < kFunctions[module]; ++i) pointers[module][i] = &slots[module][i];
  }
  if (initialize(export_table) == 0) return "its InitializeInjectionNvtx2 failed";
  if (slots[kCore2][kRangePushEx] == nullptr || slots[kCore2][kRangePop] == nullptr) {
    return "it accepts no ranges of domains";
  }
  if (slots[kCore2][kDomainCreateA] != nullptr) {
    domain = reinterpret_cast<void* (*)(const char*)>(slots[kCore2][kDomainCreateA])("annulus");
  }
  base::set_range_functions({push, pop});
  return "";
}

}  // namespace

std::string open_nvtx(const std::string& library) {
  if (library.empty()) return "";
  static std::mutex mutex;
  static bool opened = false;
  const std::lock_guard lock(mutex);
  if (opened) return "";
  const std::string problem = open(library);
  opened = true;
  if (problem.empty()) return "";
  return fmt::format("NVTX_INJECTION64_PATH is '{}', but ranges are not passed on: {}", library,
                     problem);
}

}  // namespace annulus::abi
