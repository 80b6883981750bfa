// What only a simulated driver has.

#include <algorithm>
#include <cstring>

#include "sim/driver/entries.h"
#include "sim/driver/state.h"

namespace annulus::sim::driver::entry {
namespace {

// Copies as much of a tagged struct as both sides know. `bytes` is the caller's size of it.
void copy_known(void* to, const void* from, std::size_t bytes, std::size_t ours) {
  std::memcpy(to, from, std::min(bytes, ours));
}

void finish_device(const Device& device) {
  for (const auto& context : state().contexts.all()) {
    if (context->device == &device) finish(*context);
  }
}

}  // namespace

CUresult simulator_version(int* version) {
  if (version == nullptr) return kCudaInvalidValue;
  *version = kSimulatorVersion;
  return kCudaSuccess;
}

CUresult simulator_set_options(CUdevice device, const SimulatorOptions* options) {
  return guarded([&]() -> CUresult {
    Device& at = device_at(device);
    if (options == nullptr || options->bytes < sizeof(options->bytes)) return kCudaInvalidValue;
    SimulatorOptions all = at.options();
    copy_known(&all, options, options->bytes, sizeof(all));
    all.bytes = sizeof(all);
    if (all.checked > 1 || all.landing > 2 || all.streams > 1 || all.products > 2 ||
        all.threads > 1024) {
      return kCudaInvalidValue;
    }
    finish_device(at);  // what was queued before runs as was said before
    at.set_options(all);
    state().queue.seed(at, all.seed);
    return kCudaSuccess;
  });
}

CUresult simulator_get_options(CUdevice device, SimulatorOptions* options) {
  return guarded([&]() -> CUresult {
    const Device& at = device_at(device);
    if (options == nullptr || options->bytes < sizeof(options->bytes)) return kCudaInvalidValue;
    SimulatorOptions all = at.options();
    all.bytes = options->bytes;
    copy_known(options, &all, options->bytes, sizeof(all));
    return kCudaSuccess;
  });
}

CUresult simulator_counters(CUdevice device, SimulatorCounters* counters, int clear) {
  return guarded([&]() -> CUresult {
    Device& at = device_at(device);
    if (counters == nullptr || counters->bytes < sizeof(counters->bytes)) return kCudaInvalidValue;
    SimulatorCounters all = at.counters(clear != 0);
    all.bytes = counters->bytes;
    copy_known(counters, &all, counters->bytes, sizeof(all));
    return kCudaSuccess;
  });
}

// The text is cut where `bytes` is too small; it always ends in a NUL.
CUresult simulator_last_fault(CUdevice device, char* json, std::size_t bytes) {
  return guarded([&]() -> CUresult {
    const Device& at = device_at(device);
    if (json == nullptr || bytes == 0) return kCudaInvalidValue;
    const std::string text = at.message();
    const std::size_t length = std::min(text.size(), bytes - 1);
    std::memcpy(json, text.data(), length);
    json[length] = '\0';
    return kCudaSuccess;
  });
}

CUresult simulator_clear_fault(CUdevice device) {
  return guarded([&]() -> CUresult {
    Device& at = device_at(device);
    for (const auto& context : state().contexts.all()) {
      if (context->device != &at) continue;
      synchronize(*context);  // what was queued behind the fault is dropped
      context->lost = kCudaSuccess;
    }
    at.set_message({});
    return kCudaSuccess;
  });
}

}  // namespace annulus::sim::driver::entry
