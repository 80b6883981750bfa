#include "autotune/device_key.h"

#include <fmt/core.h>

namespace annulus::autotune {

DeviceKey device_key(const device::DeviceInfo& device, const std::string& architecture,
                     int driver_version, const base::Digest& kernels) {
  constexpr std::int64_t kMega = 1 << 20;
  std::string name = device.simulated ? "simulated GPU" : device.name;
  for (char& c : name) {
    if (c < ' ' || c > '~') c = '?';  // the name is written to files and printed
  }
  DeviceKey key;
  key.simulated = device.simulated;
  std::string& text = key.identity;
  text = fmt::format("{}, {}, {} multiprocessors", name, architecture, device.multiprocessors);
  // Drivers reserve a little of the memory, and not always the same amount, so it is rounded.
  if (!device.simulated) {
    text += fmt::format(", {} GB", (device.memory_bytes + 512 * kMega) / (1024 * kMega));
  }
  text += fmt::format(", {} MHz, memory {} MHz, L2 {} MB, driver {}, kernels {}, {}",
                      device.clock_kilohertz / 1000, device.memory_clock_kilohertz / 1000,
                      device.l2_bytes / kMega, driver_version / 1000, kernels.hex(),
                      device.simulated ? "simulated" : "measured");
  key.folder = fmt::format("{}{}-{}-{}", device.simulated ? "sim-" : "", architecture,
                           device.multiprocessors, base::digest(text).hex().substr(0, 16));
  return key;
}

}  // namespace annulus::autotune
