// The caller's own streams and events, made with functions of the device's driver.

#include <doctest/doctest.h>

#include <cstdint>
#include <vector>

#include "annulus/device.h"
#include "annulus/simulator.h"
#include "api/impl.h"
#include "support/simulator.h"

namespace {

using namespace annulus;

constexpr std::int64_t kRows = 40;
constexpr std::int64_t kDim = 64;

Device open(const char* name) {
  DeviceOptions options;
  options.name = name;
  options.simulation.checked = false;
  return Device::open(options);
}

template <typename... Arguments>
int call(const Device& device, const char* name, Arguments... arguments) {
  const auto function = reinterpret_cast<int (*)(Arguments...)>(device.driver_entry(name));
  CAPTURE(name);
  REQUIRE((function != nullptr));
  return function(arguments...);
}

TEST_CASE("an embedder makes streams and events without a driver of its own") {
  const Device device = open("sim:sm_90a:2");
  CHECK(device.info().ordinal == 10);
  void* context = nullptr;
  CHECK(call(device, "cuDevicePrimaryCtxRetain", &context, device.info().ordinal) == 0);
  CHECK(call(device, "cuCtxSetCurrent", context) == 0);
  void* stream = nullptr;
  void* start = nullptr;
  void* end = nullptr;
  CHECK(call(device, "cuStreamCreate", &stream, 1u) == 0);
  CHECK(call(device, "cuEventCreate", &start, 0u) == 0);
  CHECK(call(device, "cuEventCreate", &end, 0u) == 0);

  Problem problem;
  problem.seq_q = problem.seq_k = kRows;
  problem.dim_qk = problem.dim_v = kDim;
  problem.pattern = causal();
  const Plan plan = device.plan(problem);
  const std::vector<std::uint16_t> ones(kRows * kDim, 0x3f80);
  const DeviceMemory tensor = device.allocate(ones.size() * 2);
  const DeviceMemory o = device.allocate(ones.size() * 2);
  device.copy_to_device(tensor.data(), ones.data(), tensor.bytes());
  Operands operands;
  operands.q = operands.k = operands.v = tensor.data();
  operands.o = o.data();
  operands.q_strides = operands.k_strides = operands.v_strides = operands.o_strides =
      Strides::bshd(kRows, 1, kDim);
  const DeviceMemory workspace = device.allocate(plan.workspace_bytes());
  CHECK(call(device, "cuEventRecord", start, stream) == 0);
  plan.run(stream, operands, workspace.data());
  CHECK(call(device, "cuEventRecord", end, stream) == 0);
  CHECK(call(device, "cuStreamSynchronize", stream) == 0);
  float millis = -1;
  CHECK(call(device, "cuEventElapsedTime", &millis, start, end) == 0);
  CHECK(millis >= 0);
  std::vector<std::uint16_t> answer(ones.size());
  device.copy_to_host(answer.data(), o.data(), o.bytes());
  CHECK(answer == ones);

  CHECK(call(device, "cuEventDestroy_v2", start) == 0);
  CHECK(call(device, "cuEventDestroy_v2", end) == 0);
  CHECK(call(device, "cuStreamDestroy_v2", stream) == 0);
  CHECK(call(device, "cuCtxSetCurrent", static_cast<void*>(nullptr)) == 0);
  CHECK(call(device, "cuDevicePrimaryCtxRelease_v2", device.info().ordinal) == 0);
}

TEST_CASE("every function that a simulated driver has is found by name, and no other") {
  const Device device = open("sim:sm_80");
  const char* const names[] = {
#define ENTRY(name, symbol, parameters) #symbol,
#define ALIAS(name, symbol) #symbol,
#include "simulator/driver/entries/provided.def"
  };
  for (const char* name : names) {
    CAPTURE(name);
    CHECK(device.driver_entry(name) != nullptr);
  }
  CHECK(device.driver_entry("cuNoSuchThing") == nullptr);
  CHECK(device.driver_entry("") == nullptr);
  CHECK(device.driver_entry(nullptr) == nullptr);
  annulus_simulator_counters counters{};
  counters.struct_size = sizeof(counters);
  CHECK(call(device, "annulusSimulatorCounters", device.info().ordinal, &counters, 0) == 0);
}

TEST_CASE("what the simulator has to say comes through the log of the device") {
  std::vector<std::string> lines;
  DeviceOptions options;
  options.name = "sim:sm_80:4";
  // The error describes the failure, and the log has the details.
  options.log_level = LogLevel::kInfo;
  options.log = [&](LogLevel level, std::string_view text) {
    CHECK(level == LogLevel::kInfo);
    if (text.find("PTX") != std::string_view::npos) lines.emplace_back(text);
  };
  {
    const Device device = Device::open(options);
    const auto& context = api::inside(device).context;
    const device::ContextScope scope(*context);
    abi::CUmodule module = nullptr;
    CHECK(context->table().module_load_data(&module, "no PTX at all") != abi::kCudaSuccess);
    REQUIRE(lines.size() == 1);
    CHECK(lines[0].find("PTX") != std::string::npos);
  }
  // The device is closed and its callback removed. The driver still exists.
  const device::DriverPointer driver = test::simulator_driver();
  const auto context = device::Context::retain(driver, 4);
  const device::ContextScope scope(*context);
  abi::CUmodule module = nullptr;
  CHECK(context->table().module_load_data(&module, "no PTX at all") != abi::kCudaSuccess);
  CHECK(lines.size() == 1);
}

}  // namespace
