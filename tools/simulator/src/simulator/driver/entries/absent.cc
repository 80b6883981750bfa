#include "simulator/driver/entries/absent.h"

#include <fmt/core.h>

#include <atomic>

#include "simulator/driver/objects/state.h"

namespace annulus::simulator::driver::absent {
namespace {

abi::CUresult refuse(const char* symbol, std::atomic<bool>& logged) noexcept {
  if (logged.exchange(true)) return abi::kCudaNotSupported;
  try {
    log_warning(fmt::format(
        "{} is not in the simulated driver; it returns CUDA_ERROR_NOT_SUPPORTED", symbol));
  } catch (...) {
    // A failed log line is not an error, because the returned code reports the absence too.
  }
  return abi::kCudaNotSupported;
}

}  // namespace

void log_warning(const std::string& text) {
  const auto& stack = context_stack();
  if (!stack.empty() && stack.back() != nullptr) {
    stack.back()->device->log().write(base::LogLevel::kWarning, text);
  } else if (!state().devices.empty()) {
    state().devices.front()->log().write(base::LogLevel::kWarning, text);
  }
}

#define ABSENT(symbol)               \
  abi::CUresult symbol() {           \
    static std::atomic<bool> logged; \
    return refuse(#symbol, logged);  \
  }
#include "simulator/driver/entries/absent.def"

}  // namespace annulus::simulator::driver::absent
