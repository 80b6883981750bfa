#include "tuned/device_key.h"

#include <fmt/core.h>

#include <algorithm>
#include <string_view>
#include <vector>

namespace annulus::tuned {

namespace {

std::string folder_name(const std::string& identity, const std::string& architecture,
                        const std::string& multiprocessors, bool simulated) {
  return fmt::format("{}{}-{}-{}", simulated ? "sim-" : "", architecture, multiprocessors,
                     base::digest(identity).hex().substr(0, 16));
}

}  // namespace

DeviceKey device_key(const device::DeviceInfo& device, const std::string& architecture,
                     const std::optional<base::Digest>& templates) {
  constexpr std::int64_t kMega = 1 << 20;
  // Drivers reserve some of the memory, and the amount varies.
  constexpr std::int64_t kMemoryStep = std::int64_t{4} << 30;
  std::string name = device.simulated ? "simulated GPU" : device.name;
  for (char& c : name) {
    if (c < ' ' || c > '~') c = '?';  // the name is written to files and printed
  }
  DeviceKey key;
  key.simulated = device.simulated;
  std::string& text = key.identity;
  text = fmt::format("{}, {}, {} multiprocessors", name, architecture, device.multiprocessors);
  if (!device.simulated) {
    text += fmt::format(", {} GB", (device.memory_bytes + kMemoryStep / 2) / kMemoryStep * 4);
  }
  text += fmt::format(", L2 {} MB", device.l2_bytes / kMega);
  if (templates) text += ", templates " + templates->hex();
  text += device.simulated ? ", simulated" : ", measured";
  key.folder =
      folder_name(text, architecture, std::to_string(device.multiprocessors), device.simulated);
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

// The name itself may contain ", ", so the two parts that form the folder's name are searched for.
std::string folder_for(const std::string& identity) {
  const bool simulated = identity.ends_with(", simulated");
  if (!simulated && !identity.ends_with(", measured")) return {};
  const std::vector<std::string> parts = parts_of(identity);
  const auto is_number = [](std::string_view text) {
    return !text.empty() && text.size() < 10 && text.find_first_not_of("0123456789") == text.npos;
  };
  constexpr std::string_view kArch = "sm_", kUnit = " multiprocessors";
  for (std::size_t i = 1; i + 1 < parts.size(); ++i) {
    std::string_view arch = parts[i], count = parts[i + 1];
    if (!arch.starts_with(kArch) || !count.ends_with(kUnit)) continue;
    arch.remove_prefix(kArch.size());
    count.remove_suffix(kUnit.size());
    if (!arch.empty() && arch.back() >= 'a' && arch.back() <= 'z') arch.remove_suffix(1);
    if (!is_number(arch) || !is_number(count)) continue;
    return folder_name(identity, parts[i], std::string(count), simulated);
  }
  return {};
}

std::string why_other(const std::string& stated, const std::string& identity) {
  if (stated == identity) return {};
  const std::vector<std::string> theirs = parts_of(stated);
  const std::vector<std::string> ours = parts_of(identity);
  // The identity of a simulated device has fewer parts, because it states no memory.
  if (theirs.size() != ours.size()) return fmt::format("it is of another device: {}", stated);
  std::string text;
  for (std::size_t i = 0; i < ours.size(); ++i) {
    if (theirs[i] == ours[i]) continue;
    text += fmt::format("{}{}, not {}", text.empty() ? "it is of another device: " : "; ",
                        theirs[i], ours[i]);
  }
  return text;
}

namespace {

bool in_one_row(const std::string& a, const std::string& b) {
  struct Row {
    std::string_view first, second;
  };
  static constexpr Row kRows[] = {
#define RELATIVE(first, second) {first, second},
#include "tuned/relatives.def"
#undef RELATIVE
  };
  return std::ranges::any_of(kRows, [&](const Row& row) {
    return (a == row.first && b == row.second) || (a == row.second && b == row.first);
  });
}

}  // namespace

bool are_relatives(const std::string& stated, const std::string& identity) {
  const std::vector<std::string> theirs = parts_of(stated);
  const std::vector<std::string> ours = parts_of(identity);
  if (theirs.size() != ours.size() || !in_one_row(theirs[0], ours[0])) return false;
  for (std::size_t i = 1; i < ours.size(); ++i) {
    const bool may_differ = ours[i].ends_with(" GB") || ours[i].starts_with("L2 ");
    if (theirs[i] != ours[i] && !may_differ) return false;
  }
  return true;
}

std::string folder_stem(const DeviceKey& key) {
  return key.folder.substr(0, key.folder.rfind('-') + 1);
}

std::string name_in(const std::string& identity) { return parts_of(identity)[0]; }

}  // namespace annulus::tuned
