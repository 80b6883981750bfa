#include "autotune/device_key.h"

#include <fmt/core.h>

#include <algorithm>
#include <vector>

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

namespace {

std::vector<std::string> parts_of(const std::string& identity) {
  std::vector<std::string> parts;
  for (std::size_t begin = 0; begin <= identity.size();) {
    const std::size_t end = std::min(identity.find(", ", begin), identity.size());
    parts.push_back(identity.substr(begin, end - begin));
    begin = end + 2;
  }
  return parts;
}

}  // namespace

std::string why_other(const std::string& stated, const std::string& identity) {
  if (stated == identity) return {};
  const std::vector<std::string> theirs = parts_of(stated);
  const std::vector<std::string> ours = parts_of(identity);
  // A simulated device states no memory, so its parts are fewer.
  if (theirs.size() != ours.size()) return fmt::format("it is of another device: {}", stated);
  std::string text;
  for (std::size_t i = 0; i < ours.size(); ++i) {
    if (theirs[i] == ours[i]) continue;
    text += fmt::format("{}{}, not {}", text.empty() ? "it is of another device: " : "; ",
                        theirs[i], ours[i]);
  }
  return text;
}

}  // namespace annulus::autotune
