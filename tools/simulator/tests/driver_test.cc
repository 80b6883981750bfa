// The simulated driver as a program sees it: the table of functions, devices, contexts, handles.

#include <doctest/doctest.h>
#include <sys/wait.h>

#include <string>
#include <thread>
#include <vector>

#include "on_device.h"
#include "simulator/driver/entries/entries.h"
#include "support/processes.h"

namespace annulus::simulator {
namespace {

TEST_CASE("every slot of the table is filled") {
  const CudaTable cuda = make_cuda_table();
#define SLOT(member, symbol, parameters) CHECK_MESSAGE((cuda.member != nullptr), #symbol);
#include "abi/cuda.def"
}

TEST_CASE("devices have the limits of the GPUs they stand for") {
  {
    const OnDevice ampere(first_ordinal("sm_80") + 3);
    char name[64] = {};
    CHECK(ampere.cuda.device_get_name(name, sizeof(name), ampere.device) == kCudaSuccess);
    CHECK(std::string(name) == "Annulus simulated sm_80 #3");
    CHECK(ampere.attribute(kAttributeComputeMajor) == 8);
    CHECK(ampere.attribute(kAttributeComputeMinor) == 0);
    CHECK(ampere.attribute(kAttributeMultiprocessors) == 108);
    CHECK(ampere.attribute(kAttributeMaxSharedPerBlockOptin) == 166912);
    CHECK(ampere.attribute(kAttributeMaxSharedPerBlock) == 49152);
  }
  const OnDevice hopper(first_ordinal("sm_90a"));
  CHECK(hopper.attribute(kAttributeComputeMajor) == 9);
  CHECK(hopper.attribute(kAttributeMultiprocessors) == 132);
  CHECK(hopper.attribute(kAttributeMaxSharedPerBlockOptin) == 232448);
  CHECK(first_ordinal("sm_70") == -1);
  int value = 0;
  CHECK(hopper.cuda.device_get_attribute(&value, 100000, hopper.device) == kCudaInvalidValue);
  CHECK(hopper.cuda.device_get_attribute(nullptr, kAttributeWarpSize, hopper.device) ==
        kCudaInvalidValue);
  char small[5] = {};
  CHECK(hopper.cuda.device_get_name(small, sizeof(small), hopper.device) == kCudaSuccess);
  CHECK(std::string(small) == "Annu");
  CUdevice device = 0;
  CHECK(hopper.cuda.device_get(&device, 24) == kCudaInvalidDevice);
  CHECK(hopper.cuda.device_get(&device, -1) == kCudaInvalidDevice);
}

TEST_CASE("each thread has its own stack of contexts") {
  const OnDevice on;
  const CudaTable& cuda = on.cuda;
  std::thread([&] {
    CUcontext current = on.context;
    CHECK(cuda.ctx_get_current(&current) == kCudaSuccess);
    CHECK(current == nullptr);
    CUdeviceptr pointer = 0;
    CHECK(cuda.mem_alloc(&pointer, 16) == kCudaInvalidContext);
    CHECK(cuda.ctx_pop_current(&current) == kCudaInvalidContext);
    CHECK(cuda.ctx_set_current(on.context) == kCudaSuccess);
    CHECK(cuda.mem_alloc(&pointer, 16) == kCudaSuccess);
    CHECK(cuda.mem_free(pointer) == kCudaSuccess);
    CHECK(cuda.ctx_set_current(nullptr) == kCudaSuccess);
  }).join();
  CUcontext current = nullptr;
  CHECK(cuda.ctx_get_current(&current) == kCudaSuccess);
  CHECK(current == on.context);
}

TEST_CASE("a context may be made with parameters that ask for nothing") {
  const OnDevice on;
  const CudaTable& cuda = on.cuda;
  driver::ContextParameters parameters{};
  CUcontext context = nullptr;
  REQUIRE(driver::entry::ctx_create_with_params(&context, &parameters, 0, 0) == kCudaSuccess);
  CHECK(cuda.ctx_pop_current(&context) == kCudaSuccess);
  CHECK(driver::entry::ctx_destroy(context) == kCudaSuccess);
  parameters.affinity_count = 1;
  CHECK(driver::entry::ctx_create_with_params(&context, &parameters, 0, 0) == kCudaNotSupported);
}

TEST_CASE("a function knows the architecture of its PTX and that of the device") {
  const OnDevice on(ANNULUS_SIMULATOR_DEVICES);
  const CUfunction scale = on.function(on.load(), "scale");
  int value = 0;
  CHECK(on.cuda.func_get_attribute(&value, kFunctionPtxVersion, scale) == kCudaSuccess);
  CHECK(value == 80);
  CHECK(on.cuda.func_get_attribute(&value, kFunctionBinaryVersion, scale) == kCudaSuccess);
  CHECK(value == 90);
}

TEST_CASE("the last release of a primary context takes everything with it") {
  CudaTable cuda = make_cuda_table();
  REQUIRE(cuda.init(0) == kCudaSuccess);
  CUcontext context = nullptr;
  const CUdevice device = 5;
  REQUIRE(cuda.primary_ctx_retain(&context, device) == kCudaSuccess);
  REQUIRE(cuda.ctx_push_current(context) == kCudaSuccess);
  std::size_t before = 0;
  std::size_t total = 0;
  REQUIRE(cuda.mem_get_info(&before, &total) == kCudaSuccess);
  CUdeviceptr pointer = 0;
  REQUIRE(cuda.mem_alloc(&pointer, 1 << 20) == kCudaSuccess);
  CUstream stream = nullptr;
  REQUIRE(cuda.stream_create(&stream, 0) == kCudaSuccess);
  CUmodule module = nullptr;
  REQUIRE(cuda.module_load_data(&module, test::kKernels) == kCudaSuccess);
  CHECK(cuda.primary_ctx_release(device) == kCudaSuccess);
  CHECK(cuda.primary_ctx_release(device) == kCudaInvalidContext);
  CHECK(cuda.mem_alloc(&pointer, 16) == kCudaContextDestroyed);
  CUcontext popped = nullptr;
  CHECK(cuda.ctx_pop_current(&popped) == kCudaSuccess);
  CHECK(cuda.ctx_push_current(context) == kCudaInvalidContext);

  const OnDevice again(device);
  std::size_t after = 0;
  CHECK(cuda.mem_get_info(&after, &total) == kCudaSuccess);
  CHECK(after == before);
  CHECK(cuda.stream_synchronize(stream) == kCudaInvalidHandle);
  CUfunction function = nullptr;
  CHECK(cuda.module_get_function(&function, module, "add") == kCudaInvalidHandle);
}

TEST_CASE("invented and stale handles are codes, not crashes") {
  const OnDevice on;
  const CudaTable& cuda = on.cuda;
  const auto bad_stream = reinterpret_cast<CUstream>(0x1234);
  const auto bad_event = reinterpret_cast<CUevent>(0x1234);
  const auto bad_function = reinterpret_cast<CUfunction>(0x1234);
  CHECK(cuda.stream_synchronize(bad_stream) == kCudaInvalidHandle);
  CHECK(cuda.stream_destroy(bad_stream) == kCudaInvalidHandle);
  CHECK(cuda.stream_destroy(nullptr) == kCudaInvalidHandle);
  CHECK(cuda.event_record(bad_event, nullptr) == kCudaInvalidHandle);
  CHECK(cuda.event_destroy(bad_event) == kCudaInvalidHandle);
  CHECK(cuda.module_unload(reinterpret_cast<CUmodule>(0x1234)) == kCudaInvalidHandle);
  CHECK(cuda.ctx_push_current(reinterpret_cast<CUcontext>(0x1234)) == kCudaInvalidContext);
  int value = 0;
  CHECK(cuda.func_get_attribute(&value, kFunctionRegisters, bad_function) == kCudaInvalidHandle);
  CHECK(cuda.launch_kernel(bad_function, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr) ==
        kCudaInvalidHandle);
  const CUmodule module = on.load();
  const CUfunction function = on.function(module, "scale");
  CHECK(cuda.module_unload(module) == kCudaSuccess);
  CHECK(on.scale(function, 0, 1, nullptr) == kCudaInvalidHandle);
  CUstream stream = nullptr;
  CHECK(cuda.stream_create(&stream, kStreamNonBlocking) == kCudaSuccess);
  CHECK(cuda.stream_destroy(stream) == kCudaSuccess);
  CHECK(cuda.stream_destroy(stream) == kCudaInvalidHandle);
  CHECK(cuda.stream_create(&stream, 77) == kCudaInvalidValue);
}

TEST_CASE("a caller with an older or newer struct reads and writes what both know") {
  const OnDevice on;
  SimulatorOptions options;
  options.seed = 9;
  options.struct_size = offsetof(SimulatorOptions, threads);
  options.threads = 3;  // outside of this caller's struct
  CHECK(on.cuda.simulator_set_options(on.device, &options) == kCudaSuccess);
  SimulatorOptions now;
  CHECK(on.cuda.simulator_get_options(on.device, &now) == kCudaSuccess);
  CHECK(now.seed == 9);
  CHECK(now.threads == 0);
  options.struct_size = 0;
  CHECK(on.cuda.simulator_set_options(on.device, &options) == kCudaInvalidValue);
  // If a newer caller sets members that this driver does not have, the call is refused. They are
  // not ignored.
  struct Newer : SimulatorOptions {
    std::uint32_t later = 0;
    std::uint32_t latest = 0;
  } newer;
  newer.struct_size = sizeof(newer);
  newer.seed = 11;
  CHECK(on.cuda.simulator_set_options(on.device, &newer) == kCudaSuccess);
  newer.latest = 1;
  CHECK(on.cuda.simulator_set_options(on.device, &newer) == kCudaInvalidValue);
  newer.later = 77;
  CHECK(on.cuda.simulator_get_options(on.device, &newer) == kCudaSuccess);
  CHECK(newer.struct_size == sizeof(newer));
  CHECK(newer.seed == 11);
  CHECK(newer.later == 0);
  CHECK(newer.latest == 0);
  now = {};
  CHECK(on.cuda.simulator_set_options(on.device, &now) == kCudaSuccess);
}

TEST_CASE("devices are found by architecture and index") {
  const OnDevice on;
  int device = -1;
  CHECK(on.cuda.simulator_find_device("sm_90a", 3, &device) == kCudaSuccess);
  CHECK(device == first_ordinal("sm_90a") + 3);
  CHECK(on.cuda.simulator_find_device("sm_90a", 8, &device) == kCudaInvalidDevice);
  CHECK(on.cuda.simulator_find_device("sm_90a", -1, &device) == kCudaInvalidDevice);
  CHECK(on.cuda.simulator_find_device("sm_70", 0, &device) == kCudaInvalidDevice);
  CHECK(on.cuda.simulator_find_device(nullptr, 0, &device) == kCudaInvalidValue);
}

TEST_CASE("lines of a device go to whoever asked, until he asks no more") {
  const OnDevice on;
  std::vector<std::string> lines;
  const annulus_simulator_log log = [](void* user, int level, const char* text) {
    static_cast<std::vector<std::string>*>(user)->push_back(std::to_string(level) + " " + text);
  };
  REQUIRE(on.cuda.simulator_set_log(on.device, log, &lines, 1) == kCudaSuccess);
  CUmodule module = nullptr;
  CHECK(on.cuda.module_load_data(&module, "no PTX") != kCudaSuccess);
  REQUIRE(lines.size() == 1);
  CHECK(lines[0].starts_with("1 "));
  const SimulatorOptions options;
  CHECK(on.cuda.simulator_set_options(on.device, &options) == kCudaSuccess);
  REQUIRE(lines.size() == 2);
  CHECK(lines[1].starts_with("3 "));
  CHECK(on.cuda.simulator_set_log(on.device, log, nullptr, 0) == kCudaNotFound);
  CHECK(on.cuda.simulator_set_log(on.device, log, &lines, 0) == kCudaSuccess);
  CHECK(on.cuda.simulator_set_log(on.device, log, &lines, 0) == kCudaNotFound);
  CHECK(on.cuda.simulator_set_log(on.device, nullptr, &lines, 1) == kCudaInvalidValue);
  CHECK(on.cuda.simulator_set_options(on.device, &options) == kCudaSuccess);
  CHECK(lines.size() == 2);
}

TEST_CASE("many threads may drive devices at the same time") {
  const OnDevice main_thread;
  const CUmodule module = main_thread.load();
  const CUfunction scale = main_thread.function(module, "scale");
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([scale, t] {
      const OnDevice on;
      CUstream stream = nullptr;
      REQUIRE(on.cuda.stream_create(&stream, kStreamNonBlocking) == kCudaSuccess);
      for (int i = 0; i < 10; ++i) {
        const CUdeviceptr pointer = on.allocate(4);
        on.write(pointer, static_cast<float>(t));
        REQUIRE(on.scale(scale, pointer, 2, stream) == kCudaSuccess);
        REQUIRE(on.cuda.stream_synchronize(stream) == kCudaSuccess);
        REQUIRE(on.read(pointer) == static_cast<float>(2 * t));
        REQUIRE(on.cuda.mem_free(pointer) == kCudaSuccess);
      }
      REQUIRE(on.cuda.stream_destroy(stream) == kCudaSuccess);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST_CASE("the child of a fork is refused, as CUDA refuses it, and waits for nobody") {
  const OnDevice on;
  const CUfunction scale = on.function(on.load(), "scale");
  const CUdeviceptr pointer = on.allocate(4);
  on.write(pointer, 1.0f);
  REQUIRE(on.scale(scale, pointer, 2, nullptr) == kCudaSuccess);  // creates the pool of threads
  const pid_t child = test::start([&] {
    alarm(20);
    int count = 0;
    const bool refused = on.cuda.init(0) == kCudaNotInitialized &&
                         on.cuda.device_get_count(&count) == kCudaNotInitialized &&
                         on.scale(scale, pointer, 2, nullptr) == kCudaNotInitialized &&
                         on.cuda.ctx_synchronize() == kCudaNotInitialized;
    _exit(refused ? 7 : 8);
  });
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 7);
  CHECK(on.scale(scale, pointer, 2, nullptr) == kCudaSuccess);
  CHECK(on.read(pointer) == 4.0f);
}

}  // namespace
}  // namespace annulus::simulator
