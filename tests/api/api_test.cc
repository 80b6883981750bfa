#include <doctest/doctest.h>

#include <functional>
#include <string>

#include "annulus/device.h"
#include "annulus/error.h"
#include "api/device_name.h"
#include "api/impl.h"
#include "support/failing_table.h"
#include "support/faulty_files.h"
#include "support/simulator.h"

namespace {

using namespace annulus;
using test::FailingTable;

TEST_CASE("every counter of a simulated device has its name in Device::counters") {
  const Device device = Device::open("sim:sm_80:5");
  const Counters counters = device.counters();
  const std::vector<std::string> names = {
#define COUNTER(name, meaning) #name,
#include "annulus/counters.def"
  };
  REQUIRE(counters.size() == names.size());
  for (std::size_t i = 0; i < names.size(); ++i) CHECK(counters[i].first == names[i]);
  // The struct of the driver and nothing more or less: two words before the totals.
  CHECK(sizeof(annulus_simulator_counters) == sizeof(std::uint64_t) * (1 + names.size()));
}

TEST_CASE("device names are read and written") {
  CHECK(api::parse_device_name("cuda:3") == api::DeviceName{false, "", 3});
  CHECK(api::parse_device_name("sim:sm_80") == api::DeviceName{true, "sm_80", 0});
  CHECK(api::parse_device_name("sim:sm_90a:5") == api::DeviceName{true, "sm_90a", 5});
  for (const char* text : {"cuda:0", "cuda:12", "sim:sm_80", "sim:sm_90a:3"}) {
    CHECK(api::to_string(api::parse_device_name(text)) == text);
  }
  CHECK(api::to_string(api::parse_device_name("sim:sm_80:0")) == "sim:sm_80");
  for (const char* text : {"", "cuda", "cuda:", "cuda:-1", "cuda:x", "cuda:0x", "cuda:99999",
                           "gpu:0", "sim:", "sim:80", "sim:sm_", "sim:sm_80:", "sim:sm_80:-2",
                           "sim:sm_80:1:1", "SIM:sm_80", " cuda:0"}) {
    CAPTURE(text);
    try {
      api::parse_device_name(text);
      FAIL("accepted");
    } catch (const Error& error) {
      CHECK(error.code() == ErrorCode::kInvalidArgument);
      CHECK(std::string(error.what()).find("write cuda:0") != std::string::npos);
    }
  }
}

void refused(const std::string& name, ErrorCode code) {
  DeviceOptions options;
  options.name = name;
  options.cache_dir = "";
  try {
    Device::open(options);
    FAIL("opened " << name);
  } catch (const Error& error) {
    CHECK_MESSAGE(error.code() == code, error.what());
  }
}

TEST_CASE("devices that are not there are refused") {
  refused("sim:sm_80:8", ErrorCode::kDevice);
  refused("sim:sm_75", ErrorCode::kDevice);
  refused("nonsense", ErrorCode::kInvalidArgument);
}

TEST_CASE("the environment decides where the caller does not") {
  base::Environment environment;
  environment.device = "sim:sm_80:2";
  CHECK(api::to_string(api::default_device(environment).name) == "sim:sm_80:2");
  environment.device = "sim:80";
  CHECK_THROWS_AS(api::default_device(environment), Error);
}

TEST_CASE("a device says what it is, and notes reach the caller") {
  std::string notes;
  DeviceOptions options;
  options.name = "sim:sm_90a:1";
  options.cache_dir = "";
  options.log_level = LogLevel::kDebug;
  options.log = [&](LogLevel, std::string_view text) { notes += text; };
  const Device device = Device::open(options);
  CHECK(device.info().name == "sim:sm_90a:1");
  CHECK(device.info().architecture == "sm_90a");
  CHECK(device.info().simulated);
  CHECK(device.info().shared_bytes_per_block > 200 * 1024);
  CHECK(device.info().cache_dir.empty());
  Problem problem;
  problem.seq_q = problem.seq_k = 32;
  problem.dim_qk = problem.dim_v = 64;
  const Plan plan = device.plan(problem);
  CHECK(plan.info().source == "compiled");
  CHECK(plan.info().compile_ms > 0);
  CHECK(plan.info().specialised_source.find("mma_forward") != std::string::npos);
  CHECK(notes.find("mma_forward") != std::string::npos);
  CHECK(device.plan(problem).info().source == "memory");
  CHECK(plan.problem().dim_v == 64);
}

TEST_CASE("memory of no bytes has no address") {
  const Device device = Device::open("sim:sm_80");
  DeviceMemory none = device.allocate(0);
  CHECK(none.data() == nullptr);
  CHECK(none.bytes() == 0);
  DeviceMemory some = device.allocate(100);
  CHECK(some.bytes() == 100);
  none = std::move(some);
  CHECK(none.bytes() == 100);
  CHECK_THROWS_AS(device.allocate(std::size_t{1} << 60), Error);
}

// From the driver to the answer, on a table whose calls can fail.
bool whole_flow(const abi::CudaTable& table, const std::string& cache_dir) {
  const api::DeviceName name = api::parse_device_name("sim:sm_80");
  DeviceOptions options;
  options.cache_dir = cache_dir;
  const Device device =
      api::open_on(std::make_shared<const device::Driver>(table, "the failing simulator"), name,
                   options, base::read_environment());
  Problem problem;
  problem.seq_q = problem.seq_k = 20;
  problem.dim_qk = problem.dim_v = 32;
  problem.pattern = causal() | sink(3);
  const Plan plan = device.plan(problem);
  const std::vector<std::uint16_t> ones(20 * 32, 0x3f80);
  const DeviceMemory tensor = device.allocate(ones.size() * 2);
  const DeviceMemory o = device.allocate(ones.size() * 2);
  device.copy_to_device(tensor.data(), ones.data(), tensor.bytes());
  Operands operands;
  operands.q = operands.k = operands.v = tensor.data();
  operands.o = o.data();
  operands.q_strides = operands.k_strides = operands.v_strides = operands.o_strides =
      Strides::bshd(20, 1, 32);
  plan.run(nullptr, operands);
  std::vector<std::uint16_t> answer(ones.size());
  device.copy_to_host(answer.data(), o.data(), o.bytes());
  return answer == ones;
}

TEST_CASE("every driver call of a plan and its run may fail: a typed error, and nothing leaks") {
  const test::ScratchFolder cache;
  const abi::CudaTable table = FailingTable::wrap(test::simulator_table());
  FailingTable::fail_at(-1, 0);
  REQUIRE(whole_flow(table, cache.path()));
  const int calls = FailingTable::calls();
  REQUIRE(calls > 30);
  const auto free_bytes = [] {
    const auto driver =
        std::make_shared<const device::Driver>(test::simulator_table(), "simulator");
    return device::Context::retain(driver, 0)->memory().free_bytes;
  };
  const std::size_t before = free_bytes();
  for (int index = 0; index < calls; ++index) {
    CAPTURE(index);
    for (const abi::CUresult code : {abi::kCudaInvalidHandle, abi::kCudaOutOfMemory}) {
      FailingTable::fail_at(index, code);
      bool thrown = false;
      try {
        const bool right = whole_flow(table, cache.path());  // what a destructor cannot say
        CHECK(right);
      } catch (const Error& error) {
        thrown = true;
        CHECK(error.code() ==
              (code == abi::kCudaOutOfMemory ? ErrorCode::kOutOfMemory : ErrorCode::kDevice));
      }
      CHECK(FailingTable::failed());
      // A kernel from disk that the driver rejects is compiled anew.
      const bool rejected = code == abi::kCudaInvalidHandle && FailingTable::failed_in_a_module();
      if (!rejected) FailingTable::check_heard(thrown);
      FailingTable::fail_at(-1, 0);
    }
  }
  CHECK(free_bytes() == before);
  CHECK(whole_flow(table, cache.path()));
}

}  // namespace
