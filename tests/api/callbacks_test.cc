// The caller's allocator and the caller's log in C++: the calls that they get, and the behaviour
// when they fail.

#include <doctest/doctest.h>

#include <cstdint>
#include <map>
#include <stdexcept>
#include <string>

#include "annulus/device.h"
#include "annulus/types.h"
#include "api/impl.h"
#include "device/simulator.h"
#include "support/simulator.h"

namespace {

using namespace annulus;

// Counts the driver's calls that allocate memory.
struct CountedTable {
  static inline abi::CudaTable real;
  static inline int allocations = 0;

  static abi::CudaTable wrap() {
    real = test::simulator_table();
    allocations = 0;
    abi::CudaTable table = real;
    table.mem_alloc = [](abi::CUdeviceptr* pointer, std::size_t bytes) -> abi::CUresult {
      ++allocations;
      return real.mem_alloc(pointer, bytes);
    };
    return table;
  }
};

// A pool over separate memory in the same device's context.
struct Pool {
  explicit Pool(const std::string& name) {
    const api::DeviceName parsed = api::parse_device_name(name);
    const auto driver = std::make_shared<const device::Driver>(test::simulator_table(), "a pool");
    context = device::Context::retain(driver, api::ordinal_of(parsed, *driver));
  }
  AllocatorCallbacks callbacks() {
    return {.allocate = [this](std::size_t bytes, std::size_t) -> void* {
              ++asked;
              device::Buffer buffer(context, bytes);
              void* address =
                  reinterpret_cast<void*>(static_cast<std::uintptr_t>(buffer.address()));
              live.emplace(address, std::move(buffer));
              return address;
            },
            .release =
                [this](void* address, std::size_t bytes) {
                  CHECK(context->table().stream_query(nullptr) != abi::kCudaNotReady);
                  const auto found = live.find(address);
                  REQUIRE(found != live.end());
                  CHECK(found->second.bytes() == bytes);
                  live.erase(found);
                }};
  }
  device::ContextPointer context;
  std::map<void*, device::Buffer> live;
  int asked = 0;
};

Problem small_problem() {
  Problem problem;
  problem.seq_q = problem.seq_k = 40;
  problem.dim_qk = problem.dim_v = 32;
  problem.pattern = causal() | strided(2, 0, 8);  // it has a list, so the plan holds some memory
  return problem;
}

Operands operands_of(const DeviceMemory& tensor, const DeviceMemory& o) {
  Operands operands;
  operands.q = operands.k = operands.v = tensor.data();
  operands.o = o.data();
  operands.q_strides = operands.k_strides = operands.v_strides = operands.o_strides =
      Strides::bshd(40, 1, 32);
  return operands;
}

Device open_with(const AllocatorCallbacks& allocator, const std::string& name) {
  DeviceOptions options;
  options.allocator = allocator;
  return api::open_on(std::make_shared<const device::Driver>(CountedTable::wrap(), "counted"),
                      api::parse_device_name(name), options, base::read_environment());
}

TEST_CASE("all device memory of the library comes from the caller's allocator") {
  Pool pool("sim:sm_80:5");
  {
    const Device device = open_with(pool.callbacks(), "sim:sm_80:5");
    const Plan plan = device.plan(small_problem());
    CHECK(pool.asked == 1);
    const std::vector<std::uint16_t> ones(40 * 32, 0x3f80);
    const DeviceMemory tensor = device.allocate(ones.size() * 2);
    DeviceMemory o = device.allocate(ones.size() * 2);
    CHECK(pool.asked == 1);  // one slab, which all three share
    device.copy_to_device(tensor.data(), ones.data(), tensor.bytes());
    plan.run(nullptr, operands_of(tensor, o));
    std::vector<std::uint16_t> answer(ones.size());
    device.copy_to_host(answer.data(), o.data(), o.bytes());
    CHECK(answer == ones);
    // A block in a separate slab is released while work is pending. The slab must be released after
    // the work, which Pool checks.
    o = device.allocate(std::size_t{20} << 20);
    CHECK(pool.asked == 2);
    plan.run(nullptr, operands_of(tensor, o));
    o = DeviceMemory();
    CHECK(pool.live.size() == 2);
    CHECK(device.trim(std::size_t{2} << 20) == std::size_t{20} << 20);
    CHECK(pool.live.size() == 1);
    CHECK(pool.asked == 2);
  }
  CHECK(pool.live.empty());
  CHECK(CountedTable::allocations == 0);
}

TEST_CASE("an allocator gets its memory back also after the context was lost") {
  Pool pool("sim:sm_80:5");
  {
    const Device device = open_with(pool.callbacks(), "sim:sm_80:5");
    const Plan plan = device.plan(small_problem());
    const DeviceMemory tensor = device.allocate(40 * 32 * 2);
    const DeviceMemory o = device.allocate(40 * 32 * 2);
    Operands operands = operands_of(tensor, o);
    operands.q = reinterpret_cast<void*>(0x1000);  // an address without memory
    plan.run(nullptr, operands);
    try {
      device.synchronize();
      FAIL("no fault");
    } catch (const Error& error) {
      CHECK(error.code() == ErrorCode::kFault);
    }
    CHECK(pool.live.size() == 1);
  }
  CHECK(pool.live.empty());
  CHECK(device::clear_simulator_fault(*pool.context));
}

void fails(const std::function<void*(std::size_t, std::size_t)>& allocate, ErrorCode code,
           const std::string& part) {
  int released = 0;
  const Device device = open_with(
      {.allocate = allocate, .release = [&](void*, std::size_t) { ++released; }}, "sim:sm_80");
  for (const bool plan : {false, true}) {
    try {
      if (plan) {
        device.plan(small_problem());
      } else {
        device.allocate(100);
      }
      FAIL("accepted: " << part);
    } catch (const Error& error) {
      CHECK(error.code() == code);
      CHECK_MESSAGE(std::string(error.what()).find(part) != std::string::npos, error.what());
    }
  }
  CHECK(released == (part.find("multiple") == std::string::npos ? 0 : 2));
}

TEST_CASE("an allocator that fails is a typed error") {
  fails([](std::size_t, std::size_t) -> void* { return nullptr; }, ErrorCode::kOutOfMemory,
        "returned null for ");
  fails([](std::size_t, std::size_t) -> void* { throw std::runtime_error("the pool is shut"); },
        ErrorCode::kOutOfMemory, "the pool is shut");
  fails([](std::size_t, std::size_t) -> void* { throw 7; }, ErrorCode::kOutOfMemory, "refused");
  fails([](std::size_t, std::size_t) -> void* { throw Error(ErrorCode::kDevice, "mine"); },
        ErrorCode::kDevice, "mine");
  fails([](std::size_t, std::size_t) { return reinterpret_cast<void*>(0x1001); },
        ErrorCode::kInvalidArgument, "multiple of the alignment, 256");
}

TEST_CASE("half an allocator is refused") {
  DeviceOptions options;
  options.name = "sim:sm_80";
  options.allocator.release = [](void*, std::size_t) {};
  CHECK_THROWS_WITH_AS(Device::open(options),
                       "the allocator has no allocate; give both functions, or neither", Error);
  options.allocator.allocate = [](std::size_t, std::size_t) -> void* { return nullptr; };
  options.allocator.release = nullptr;
  CHECK_THROWS_WITH_AS(Device::open(options),
                       "the allocator has no release; give both functions, or neither", Error);
}

TEST_CASE("what a log or a release throws is dropped") {
  int notes = 0;
  Pool pool("sim:sm_80:5");
  DeviceOptions options;
  options.name = "sim:sm_80:5";
  options.cache_dir = "/proc/no such folder";
  options.log_level = LogLevel::kDebug;
  options.log = [&](LogLevel, std::string_view) {
    ++notes;
    throw std::runtime_error("the log is full");
  };
  options.allocator = pool.callbacks();
  options.allocator.release = [&, release = options.allocator.release](void* at, std::size_t n) {
    release(at, n);
    throw 7;
  };
  {
    const Device device = Device::open(options);
    const Plan plan = device.plan(small_problem());
    CHECK(plan.info().source == "compiled");
  }
  CHECK(notes > 1);
  CHECK(pool.asked == 1);
  CHECK(pool.live.empty());
}

}  // namespace
