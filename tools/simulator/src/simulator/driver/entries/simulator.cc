// The functions that only a simulated driver has.

#include <fmt/core.h>

#include <algorithm>
#include <cstring>

#include "simulator/driver/entries/entries.h"
#include "simulator/driver/objects/start_options.h"
#include "simulator/driver/objects/state.h"

namespace annulus::simulator::driver::entry {
namespace {

// Copies a struct of the caller over one of ours. Members that the caller's version lacks keep
// their values. Returns false if the caller's version has members that we lack, and one of them is
// not 0.
template <typename Struct>
bool read_struct(const Struct* from, Struct* ours) {
  const std::size_t theirs = from->struct_size;
  if (theirs < sizeof(from->struct_size)) return false;
  const auto* bytes = reinterpret_cast<const unsigned char*>(from);
  for (std::size_t i = sizeof(Struct); i < theirs; ++i) {
    if (bytes[i] != 0) return false;
  }
  std::memcpy(ours, from, std::min(theirs, sizeof(Struct)));
  ours->struct_size = sizeof(Struct);
  return true;
}

// Copies one of our structs to a struct of the caller. Members that we lack become 0.
template <typename Struct>
bool write_struct(const Struct& ours, Struct* to) {
  const std::uint32_t theirs = to->struct_size;
  if (theirs < sizeof(to->struct_size)) return false;
  const std::size_t known = std::min<std::size_t>(theirs, sizeof(Struct));
  std::memcpy(to, &ours, known);
  to->struct_size = theirs;
  std::memset(reinterpret_cast<unsigned char*>(to) + known, 0, theirs - known);
  return true;
}

void finish_device(const Device& device) {
  for (const auto& context : state().contexts.all()) {
    if (context->device == &device) finish(*context);
  }
}

}  // namespace

CUresult simulator_version(int* version) {
  if (version == nullptr) return kCudaInvalidValue;
  *version = ANNULUS_SIMULATOR_VERSION;
  return kCudaSuccess;
}

CUresult simulator_find_device(const char* architecture, int index, CUdevice* device) {
  return guarded([&]() -> CUresult {
    if (architecture == nullptr || device == nullptr) return kCudaInvalidValue;
    for (const auto& one : state().devices) {
      if (std::strcmp(one->model().architecture, architecture) != 0 || one->index() != index) {
        continue;
      }
      *device = one->ordinal();
      return kCudaSuccess;
    }
    return kCudaInvalidDevice;
  });
}

CUresult simulator_set_options(CUdevice device, const annulus_simulator_options* options) {
  return guarded([&]() -> CUresult {
    Device& at = device_at(device);
    if (options == nullptr) return kCudaInvalidValue;
    SimulatorOptions all = at.options();
    if (!read_struct<annulus_simulator_options>(options, &all)) return kCudaInvalidValue;
    if (!valid(all)) return kCudaInvalidValue;
    finish_device(at);  // work that was queued earlier runs with the old options
    at.set_options(all);
    state().queue.seed(at, all.seed);
    at.log().write(
        base::LogLevel::kDebug,
        fmt::format("the simulated device {} runs {}, reading {}, with seed {} from now on",
                    at.ordinal(), all.checked != 0 ? "checked" : "unchecked",
                    all.reading != 0 ? "proven" : "strict", all.seed));
    return kCudaSuccess;
  });
}

CUresult simulator_get_options(CUdevice device, annulus_simulator_options* options) {
  return guarded([&]() -> CUresult {
    const Device& at = device_at(device);
    if (options == nullptr) return kCudaInvalidValue;
    const annulus_simulator_options all = at.options();
    return write_struct(all, options) ? kCudaSuccess : kCudaInvalidValue;
  });
}

CUresult simulator_counters(CUdevice device, annulus_simulator_counters* counters, int clear) {
  return guarded([&]() -> CUresult {
    Device& at = device_at(device);
    if (counters == nullptr || counters->struct_size < sizeof(counters->struct_size)) {
      return kCudaInvalidValue;  // fails before any counter is cleared
    }
    const annulus_simulator_counters all = at.counters(clear != 0);
    return write_struct(all, counters) ? kCudaSuccess : kCudaInvalidValue;
  });
}

// If `bytes` is too small, the text is cut. It always ends in a NUL.
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
      synchronize(*context);  // drops the work that was queued after the fault
      context->lost = kCudaSuccess;
    }
    at.clear_message();
    return kCudaSuccess;
  });
}

CUresult simulator_set_log(CUdevice device, annulus_simulator_log log, void* user, int on) {
  return guarded([&]() -> CUresult {
    Device& at = device_at(device);
    if (log == nullptr || on < 0 || on > 1) return kCudaInvalidValue;
    if (on == 0) return at.log().remove(log, user) ? kCudaSuccess : kCudaNotFound;
    at.log().add(log, user);
    return kCudaSuccess;
  });
}

}  // namespace annulus::simulator::driver::entry
