#include "simulator/driver/absent.h"

#include <fmt/core.h>

#include <atomic>

#include "simulator/driver/state.h"

namespace annulus::simulator::driver::absent {
namespace {

// The line goes to the log of the current device, or of the first where none is: a program calls
// some of these before it has a context.
abi::CUresult refuse(const char* symbol, std::atomic<bool>& told) noexcept {
  if (told.exchange(true)) return abi::kCudaNotSupported;
  try {
    const std::string text = fmt::format(
        "{} is not in the simulated driver; it returns CUDA_ERROR_NOT_SUPPORTED", symbol);
    const auto& stack = context_stack();
    if (!stack.empty() && stack.back() != nullptr) {
      stack.back()->device->log().write(base::LogLevel::kWarning, text);
    } else if (!state().devices.empty()) {
      state().devices.front()->log().write(base::LogLevel::kWarning, text);
    }
  } catch (...) {
    // The code says it too.
  }
  return abi::kCudaNotSupported;
}

}  // namespace

#define ABSENT(symbol)             \
  abi::CUresult symbol() {         \
    static std::atomic<bool> told; \
    return refuse(#symbol, told);  \
  }
#include "simulator/driver/absent.def"

}  // namespace annulus::simulator::driver::absent
