#include <doctest/doctest.h>

#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <functional>
#include <string>
#include <tuple>
#include <vector>

#include "annulus/device.h"
#include "annulus/types.h"
#include "api/device_name.h"
#include "api/impl.h"
#include "api/tuned_places.h"
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
  // The struct has the driver's counters and nothing else: two words before the totals.
  CHECK(sizeof(annulus_simulator_counters) == sizeof(std::uint64_t) * (1 + names.size()));
}

TEST_CASE("a folder that HOME gives is one folder, and a path that a user gives is split") {
  using Folders = std::vector<std::string>;
  base::Environment environment{.home = "/home/a:b"};
  CHECK(api::tuned_places({}, environment).folders == Folders{"/home/a:b/.cache/annulus/tuned"});
  CHECK(api::tuned_places("/x:/y", environment).folders == Folders{"/x", "/y"});
  environment.tuned = "/v:/w";
  CHECK(api::tuned_places({}, environment).folders == Folders{"/v", "/w"});
}

TEST_CASE("device names are read and written") {
  CHECK(api::parse_device_name("cuda:3") == api::DeviceName{false, "", 3});
  CHECK(api::parse_device_name("sim:sm_80") == api::DeviceName{true, "sm_80", 0});
  CHECK(api::parse_device_name("sim:sm_90a:5") == api::DeviceName{true, "sm_90a", 5});
  for (const char* text : {"cuda:0", "cuda:12", "sim:sm_80", "sim:sm_90a:3"}) {
    CHECK(api::to_string(api::parse_device_name(text)) == text);
  }
  CHECK(api::to_string(api::parse_device_name("sim:sm_80:0")) == "sim:sm_80");
  CHECK(api::to_string(api::parse_device_name("cuda")) == "cuda:0");
  for (const char* text :
       {"", "cud", "cuda:", "cuda:-1", "cuda:x", "cuda:0x", "cuda:99999", "gpu:0", "sim:", "sim:80",
        "sim:sm_", "sim:sm_80:", "sim:sm_80:-2", "sim:sm_80:1:1", "SIM:sm_80", " cuda:0"}) {
    CAPTURE(text);
    try {
      api::parse_device_name(text);
      FAIL("accepted");
    } catch (const Error& error) {
      CHECK(error.code() == ErrorCode::kInvalidArgument);
      CHECK(std::string(error.what()).find("write cuda, cuda:0") != std::string::npos);
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

// A problem with operands that are zeros, on a device.
struct Zeros {
  explicit Zeros(const std::string& name, Dtype dtype = Dtype::kBfloat16, bool check = false)
      : device([&] {
          DeviceOptions options;
          options.name = name;
          options.check_operands = check;
          return Device::open(options);
        }()) {
    problem.seq_q = problem.seq_k = kRows;
    problem.dim_qk = problem.dim_v = 64;
    problem.heads = problem.kv_heads = 2;
    problem.dtype = dtype;
    const std::vector<std::uint16_t> zeros(kRows * 2 * 64);
    device.copy_to_device(memory.data(), zeros.data(), memory.bytes());
    operands.q = operands.k = operands.v = memory.data();
    operands.o = o.data();
    operands.q_strides = operands.k_strides = operands.v_strides = operands.o_strides =
        Strides::bshd(kRows, 2, 64);
  }

  static constexpr std::int64_t kRows = 300;
  Device device;
  DeviceMemory memory = device.allocate(kRows * 2 * 64 * 2);
  DeviceMemory o = device.allocate(kRows * 2 * 64 * 2);
  Problem problem;
  Operands operands;
};

std::string refusal(ErrorCode code, const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    CHECK_MESSAGE(error.code() == code, error.what());
    return error.what();
  }
  FAIL("accepted");
  return {};
}

TEST_CASE("forgotten strides are one error on every family") {
  std::vector<std::string> texts;
  for (const auto& [name, dtype, config] :
       {std::tuple{"sim:sm_80", Dtype::kBfloat16, ""},
        std::tuple{"sim:sm_90a", Dtype::kBfloat16, "mma m64 n64 w4 s2"},
        std::tuple{"sim:sm_90a", Dtype::kBfloat16, "wgmma m128 n64 w8 s2"},
        std::tuple{"sim:sm_90a", Dtype::kFloat8E4M3, "wgmma8 m128 n64 w8 s2"}}) {
    CAPTURE(config);
    Zeros zeros(name, dtype);
    PlanOptions options;
    options.config = config;
    const Plan plan = zeros.device.plan(zeros.problem, options);
    const DeviceMemory workspace = zeros.device.allocate(plan.workspace_bytes());
    const Operands good = zeros.operands;
    zeros.operands.k_strides = {};
    texts.push_back(refusal(ErrorCode::kInvalidArgument,
                            [&] { plan.run(nullptr, zeros.operands, workspace.data()); }));
    CHECK(texts.back() == texts.front());
    // If the strides are given at planning, the error is the same.
    options.strides = OperandStrides{good.q_strides, {}, good.v_strides, good.o_strides};
    CHECK(refusal(ErrorCode::kInvalidArgument,
                  [&] { zeros.device.plan(zeros.problem, options); }) == texts.front());
  }
  CHECK(texts.front().find("the strides of K are 0, 0 and 0") != std::string::npos);
  CHECK(texts.front().find("broadcast_rows") != std::string::npos);
  // With broadcast_rows it runs, if the family's copies support that.
  Zeros zeros("sim:sm_80");
  zeros.operands.k_strides = zeros.operands.v_strides = {};
  zeros.operands.broadcast_rows = true;
  const Plan plan = zeros.device.plan(zeros.problem);
  const DeviceMemory workspace = zeros.device.allocate(plan.workspace_bytes());
  plan.run(nullptr, zeros.operands, workspace.data());
  zeros.device.synchronize();
}

TEST_CASE("memory of the host is found before a kernel faults on it, where that is asked for") {
  Zeros zeros("sim:sm_80", Dtype::kBfloat16, true);
  const Plan plan = zeros.device.plan(zeros.problem);
  const DeviceMemory workspace = zeros.device.allocate(plan.workspace_bytes());
  plan.run(nullptr, zeros.operands, workspace.data());
  alignas(16) static std::uint16_t host[Zeros::kRows * 2 * 64];
  zeros.operands.v = host;
  const std::string text = refusal(ErrorCode::kInvalidArgument,
                                   [&] { plan.run(nullptr, zeros.operands, workspace.data()); });
  CHECK(text.starts_with("V at 0x"));
  CHECK(text.find("not memory of the device") != std::string::npos);
  CHECK_THROWS_AS(plan.bind(zeros.operands, workspace.data()), Error);
  zeros.device.synchronize();  // no fault occurred
}

TEST_CASE("the child of a fork is told that it was forked, not that its tensors are wrong") {
  Zeros zeros("sim:sm_90a");
  PlanOptions options;
  options.config = "wgmma m128 n64 w8 s2";
  const Plan plan = zeros.device.plan(zeros.problem, options);
  const DeviceMemory workspace = zeros.device.allocate(plan.workspace_bytes());
  const pid_t child = fork();
  if (child == 0) {
    int code = 1;
    try {
      plan.run(nullptr, zeros.operands, workspace.data());
    } catch (const Error& error) {
      const bool told = std::string(error.what()).find("forked") != std::string::npos;
      code = told && error.code() == ErrorCode::kDevice ? 0 : 2;
    }
    _exit(code);
  }
  REQUIRE(child > 0);
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
  plan.run(nullptr, zeros.operands, workspace.data());
  zeros.device.synchronize();
}

TEST_CASE("a GPU that is required is not replaced by the simulator, and else that is said") {
  unsetenv("ANNULUS_DEVICE");
  std::string notes;
  DeviceOptions options;
  options.log = [&](LogLevel level, std::string_view text) {
    if (level == LogLevel::kWarning) notes += text;
  };
  const Device device = Device::open(options);
  if (device.info().simulated) {
    CHECK(notes.find("a simulated device") != std::string::npos);
    setenv("ANNULUS_REQUIRE_GPU", "1", 1);
    CHECK(refusal(ErrorCode::kDevice, [] { Device::open(); }).find("ANNULUS_REQUIRE_GPU is '1'") !=
          std::string::npos);
    CHECK(refusal(ErrorCode::kDevice, [] {
            Device::open("sim:sm_80");
          }).find("ANNULUS_REQUIRE_GPU is '1'") != std::string::npos);
    setenv("ANNULUS_REQUIRE_GPU", "0", 1);
    Device::open();
    unsetenv("ANNULUS_REQUIRE_GPU");
  }
  notes.clear();
  options.name = "sim:sm_80";
  Device::open(options);
  CHECK(notes.empty());
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

// A whole flow, from opening the driver to the answer, on a table whose calls can fail.
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
        // An error that a destructor cannot report.
        const bool right = whole_flow(table, cache.path());
        CHECK(right);
      } catch (const Error& error) {
        thrown = true;
        CHECK(error.code() ==
              (code == abi::kCudaOutOfMemory ? ErrorCode::kOutOfMemory : ErrorCode::kDevice));
      }
      CHECK(FailingTable::failed());
      // If the driver rejects a kernel from disk, the kernel is compiled again.
      const bool rejected = code == abi::kCudaInvalidHandle && FailingTable::failed_in_a_module();
      if (!rejected) FailingTable::check_heard(thrown);
      FailingTable::fail_at(-1, 0);
    }
  }
  CHECK(free_bytes() == before);
  CHECK(whole_flow(table, cache.path()));
}

}  // namespace
