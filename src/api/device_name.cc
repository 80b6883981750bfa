#include "api/device_name.h"

#include <charconv>
#include <optional>

#include "base/fail.h"
#include "jit/arch.h"

namespace annulus::api {
namespace {

constexpr int kMaxIndex = 1023;

std::optional<int> index_of(std::string_view text) {
  int index = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), index);
  if (text.empty() || error != std::errc() || end != text.data() + text.size() || index < 0 ||
      index > kMaxIndex) {
    return std::nullopt;
  }
  return index;
}

[[noreturn]] void refuse(std::string_view text, std::string_view why) {
  base::fail(ErrorCode::kInvalidArgument,
             "'{}' names no device: {}; write cuda, cuda:0, sim:sm_80 or sim:sm_90a:1", text, why);
}

}  // namespace

DeviceName parse_device_name(std::string_view text) {
  DeviceName name;
  if (text == "cuda") return name;  // the first GPU
  if (text.starts_with("cuda:")) {
    const auto index = index_of(text.substr(5));
    if (!index) refuse(text, "after cuda: comes a number from 0 to 1023");
    name.index = *index;
    return name;
  }
  if (!text.starts_with("sim:")) refuse(text, "it begins neither with cuda: nor with sim:");
  name.simulated = true;
  std::string_view rest = text.substr(4);
  const std::size_t colon = rest.find(':');
  if (colon != std::string_view::npos) {
    const auto index = index_of(rest.substr(colon + 1));
    if (!index) refuse(text, "after the architecture comes a number from 0 to 1023");
    name.index = *index;
    rest = rest.substr(0, colon);
  }
  try {
    name.architecture = jit::to_string(jit::parse_arch(rest));
  } catch (const Error& error) {
    refuse(text, error.what());
  }
  return name;
}

std::string to_string(const DeviceName& name) {
  if (!name.simulated) return fmt::format("cuda:{}", name.index);
  if (name.index == 0) return "sim:" + name.architecture;
  return fmt::format("sim:{}:{}", name.architecture, name.index);
}

}  // namespace annulus::api
