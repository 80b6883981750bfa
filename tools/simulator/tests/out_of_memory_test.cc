// The host has no memory for a call of the driver, or for work that a stream runs later. Both
// return an error. Neither is a fault of the program, and the device stays usable.

#include <doctest/doctest.h>

#include <string>

#include "on_device.h"
#include "simulator/driver/objects/image.h"
#include "support/replaced_new.h"

namespace annulus::simulator {
namespace {

struct OnOneThread : OnDevice {
  OnOneThread() { set(true); }
  ~OnOneThread() { set(true, 0); }
  void set(bool checked, std::uint32_t threads = 1) const {
    SimulatorOptions options;
    options.checked = checked;
    options.threads = threads;  // 1: work runs on this thread, whose allocations fail
    REQUIRE(cuda.simulator_set_options(device, &options) == kCudaSuccess);
  }
};

TEST_CASE("work for which the host has no memory is an answer of the next wait, once") {
  const OnOneThread on;
  const CUmodule module = on.load();
  const CUfunction scale = on.function(module, "scale");
  for (const bool checked : {true, false}) {
    on.set(checked);
    std::size_t before = 0, total = 0;
    REQUIRE(on.cuda.mem_get_info(&before, &total) == kCudaSuccess);
    int refused_calls = 0, refused_waits = 0;
    for (int n = 0;; ++n) {
      CAPTURE(n);
      REQUIRE(n < 10'000);
      const CUdeviceptr pointer = on.allocate(4);
      on.write(pointer, 3);
      CUstream stream = nullptr;
      REQUIRE(on.cuda.stream_create(&stream, 0) == kCudaSuccess);
      CUresult launched = kCudaSuccess, waited = kCudaSuccess;
      const bool failed = test::with_failing_new(n, [&] {
        launched = on.scale(scale, pointer, 2, stream);
        waited = on.cuda.stream_synchronize(stream);
      });
      CHECK((launched == kCudaSuccess || launched == kCudaOutOfMemory));
      CHECK((waited == kCudaSuccess || waited == kCudaOutOfMemory));
      CHECK((launched != kCudaSuccess || waited != kCudaSuccess) == failed);
      refused_calls += launched != kCudaSuccess;
      refused_waits += waited != kCudaSuccess;
      // The error is returned once, and the next piece of work runs.
      CHECK(on.cuda.stream_synchronize(stream) == kCudaSuccess);
      on.write(pointer, 5);
      CHECK(on.scale(scale, pointer, 2, stream) == kCudaSuccess);
      CHECK(on.cuda.stream_synchronize(stream) == kCudaSuccess);
      CHECK(on.read(pointer) == 10);
      CHECK(on.cuda.ctx_synchronize() == kCudaSuccess);
      REQUIRE(on.cuda.stream_destroy(stream) == kCudaSuccess);
      REQUIRE(on.cuda.mem_free(pointer) == kCudaSuccess);
      std::size_t after = 0;
      REQUIRE(on.cuda.mem_get_info(&after, &total) == kCudaSuccess);
      CHECK(after == before);
      if (!failed) break;
    }
    CHECK(refused_calls > 3);
    CHECK(refused_waits > 3);
  }
  on.cuda.module_unload(module);
}

TEST_CASE("what waits for refused work is refused too, on every stream that it was queued on") {
  const OnOneThread on;
  const CUmodule module = on.load();
  const CUfunction scale = on.function(module, "scale");
  const CUdeviceptr pointer = on.allocate(4);
  CUstream first = nullptr, second = nullptr;
  CUevent event = nullptr;
  REQUIRE(on.cuda.stream_create(&first, 1) == kCudaSuccess);
  REQUIRE(on.cuda.stream_create(&second, 1) == kCudaSuccess);
  REQUIRE(on.cuda.event_create(&event, 0) == kCudaSuccess);
  bool refused = false;
  for (int n = 0; n < 10'000; ++n) {
    on.write(pointer, 3);
    REQUIRE(on.scale(scale, pointer, 2, first) == kCudaSuccess);
    REQUIRE(on.cuda.event_record(event, first) == kCudaSuccess);
    REQUIRE(on.cuda.stream_wait_event(second, event, 0) == kCudaSuccess);
    REQUIRE(on.scale(scale, pointer, 5, second) == kCudaSuccess);
    CUresult one = kCudaSuccess;
    const bool failed = test::with_failing_new(n, [&] { one = on.cuda.stream_synchronize(first); });
    const CUresult two = on.cuda.stream_synchronize(second);
    if (one == kCudaSuccess && two == kCudaSuccess) CHECK(on.read(pointer) == 30);
    // If neither stream has returned an error, the result was right.
    if (one == kCudaOutOfMemory) refused = true;
    // An error that a wait for the whole context has returned is not returned again for later work.
    CHECK(on.cuda.ctx_synchronize() == kCudaSuccess);
    REQUIRE(on.scale(scale, pointer, 2, nullptr) == kCudaSuccess);
    test::with_failing_new(n, [&] { one = on.cuda.ctx_synchronize(); });
    on.write(pointer, 7);
    CHECK(on.read(pointer) == 7);
    if (!failed) break;
  }
  CHECK(refused);
  on.cuda.event_destroy(event);
  on.cuda.stream_destroy(first);
  on.cuda.stream_destroy(second);
  on.cuda.mem_free(pointer);
  on.cuda.module_unload(module);
}

constexpr const char* kAtomic =
    ".version 8.0\n.target sm_80\n.address_size 64\n"
    ".visible .entry count(.param .u64 p) {\n"
    ".reg .b64 a; .reg .b32 x;\nld.param.u64 a, [p]; red.global.add.u32 [a], 1;\nret;\n}\n"
    ".visible .entry copy(.param .u64 p) {\n"
    ".reg .b64 a; .reg .b32 x;\nld.param.u64 a, [p]; ld.global.u32 x, [a]; st.global.u32 [a+4], "
    "x;\nret;\n}\n";

TEST_CASE("an atomic in fast mode leaves memory that the checked mode may read") {
  const OnOneThread on;
  const CUmodule module = on.load(kAtomic);
  CUdeviceptr pointer = on.allocate(8);
  void* parameters[] = {&pointer};
  const auto run = [&](const char* name, bool checked) {
    on.set(checked);
    REQUIRE(on.cuda.launch_kernel(on.function(module, name), 1, 1, 1, 1, 1, 1, 0, nullptr,
                                  parameters, nullptr) == kCudaSuccess);
    return on.cuda.ctx_synchronize();
  };
  CHECK(run("count", false) == kCudaSuccess);
  CHECK(run("copy", true) == kCudaSuccess);
  on.cuda.mem_free(pointer);
  on.cuda.module_unload(module);
}

TEST_CASE("the version of PTX is read digit by digit") {
  const auto version = [](const std::string& text) {
    return driver::read_header(".version " + text + "\n.target sm_80\n").version;
  };
  CHECK(version("8.3") == 83);
  CHECK(version("9.0") == 90);
  CHECK(version("7.e8") == 0);
  CHECK(version("8,3") == 0);
  CHECK(version("99999999999999.9") == 0);
  CHECK(version("-8.3") == 0);
}

}  // namespace
}  // namespace annulus::simulator
