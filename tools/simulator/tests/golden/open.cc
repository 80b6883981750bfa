#include <charconv>

#include "abi/libraries.h"
#include "base/env.h"
#include "base/fail.h"
#include "device/driver.h"
#include "golden/runner.h"
#include "simulator/driver/driver.h"

namespace annulus::golden {
namespace {

// "cuda:0" -> {"cuda", 0}; "sim:sm_80:3" -> {"sim:sm_80", 3}; a missing number is 0.
std::pair<std::string, int> split(const std::string& name) {
  const std::size_t colon = name.rfind(':');
  int index = 0;
  if (colon == std::string::npos) return {name, 0};
  const char* end = name.data() + name.size();
  const auto [stop, error] = std::from_chars(name.data() + colon + 1, end, index);
  if (error != std::errc() || stop != end) return {name, 0};
  return {name.substr(0, colon), index};
}

}  // namespace

device::ContextPointer open_device(const std::string& name) {
  const auto [kind, index] = split(name);
  if (kind == "cuda") {
    auto library = abi::open_cuda(abi::default_search(base::read_environment()));
    return device::Context::retain(std::make_shared<device::Driver>(std::move(library)), index);
  }
  const int first = kind.starts_with("sim:") ? simulator::first_ordinal(kind.c_str() + 4) : -1;
  if (first < 0)
    base::fail(ErrorCode::kInvalidArgument, "no device is called '{}'; try sim:sm_80 or cuda:0",
               name);
  return device::Context::retain(
      std::make_shared<device::Driver>(simulator::make_cuda_table(), "the simulator"),
      first + index);
}

}  // namespace annulus::golden
