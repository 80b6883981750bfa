// The simulated driver as a program sees it: codes, handles, contexts, limits.

#include "sim/driver.h"

#include <doctest/doctest.h>

#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "support/kernels.h"

namespace annulus::sim {
namespace {

using namespace annulus::abi;

// A driver with the primary context of one device current.
struct OnDevice {
  CudaTable cuda = make_cuda_table();
  CUdevice device = 0;
  CUcontext context = nullptr;

  explicit OnDevice(int ordinal = 0) {
    REQUIRE(cuda.init(0) == kCudaSuccess);
    REQUIRE(cuda.device_get(&device, ordinal) == kCudaSuccess);
    REQUIRE(cuda.primary_ctx_retain(&context, device) == kCudaSuccess);
    REQUIRE(cuda.ctx_push_current(context) == kCudaSuccess);
  }
  ~OnDevice() {
    CUcontext popped = nullptr;
    cuda.simulator_clear_fault(device);
    cuda.ctx_pop_current(&popped);
    cuda.primary_ctx_release(device);
  }

  CUdeviceptr allocate(std::size_t bytes) const {
    CUdeviceptr pointer = 0;
    REQUIRE(cuda.mem_alloc(&pointer, bytes) == kCudaSuccess);
    return pointer;
  }
  CUmodule load(const char* ptx = test::kKernels) const {
    CUmodule module = nullptr;
    REQUIRE(cuda.module_load_data(&module, ptx) == kCudaSuccess);
    return module;
  }
  CUfunction function(CUmodule module, const char* name) const {
    CUfunction function = nullptr;
    REQUIRE(cuda.module_get_function(&function, module, name) == kCudaSuccess);
    return function;
  }
  int attribute(int which) const {
    int value = -1;
    REQUIRE(cuda.device_get_attribute(&value, which, device) == kCudaSuccess);
    return value;
  }
  std::string message() const {
    char text[4096] = {};
    REQUIRE(cuda.simulator_last_fault(device, text, sizeof(text)) == kCudaSuccess);
    return text;
  }
  // x *= factor of the float at `pointer`, on `stream`.
  CUresult scale(CUfunction function, CUdeviceptr pointer, float factor, CUstream stream) const {
    void* parameters[] = {&pointer, &factor};
    return cuda.launch_kernel(function, 1, 1, 1, 1, 1, 1, 0, stream, parameters, nullptr);
  }
  float read(CUdeviceptr pointer) const {
    float value = 0;
    REQUIRE(cuda.memcpy_dtoh(&value, pointer, sizeof(value)) == kCudaSuccess);
    return value;
  }
  void write(CUdeviceptr pointer, float value) const {
    REQUIRE(cuda.memcpy_htod(pointer, &value, sizeof(value)) == kCudaSuccess);
  }
};

TEST_CASE("every slot of the table is filled") {
  const CudaTable cuda = make_cuda_table();
#define REQUIRED(member, symbol, parameters) CHECK_MESSAGE((cuda.member != nullptr), #symbol);
#define OPTIONAL(member, symbol, parameters) CHECK_MESSAGE((cuda.member != nullptr), #symbol);
#include "abi/cuda.def"
#undef REQUIRED
#undef OPTIONAL
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
  CHECK(hopper.cuda.device_get(&device, 16) == kCudaInvalidDevice);
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

TEST_CASE("memory: sizes, second frees and pointers into the middle") {
  const OnDevice on;
  const CudaTable& cuda = on.cuda;
  CUdeviceptr pointer = 0;
  CHECK(cuda.mem_alloc(&pointer, 0) == kCudaInvalidValue);
  CHECK(cuda.mem_alloc(nullptr, 16) == kCudaInvalidValue);
  CHECK(cuda.mem_alloc(&pointer, ~std::size_t{0}) == kCudaOutOfMemory);
  pointer = on.allocate(1000);
  CHECK(pointer % 256 == 0);
  CHECK(cuda.mem_free(pointer + 16) == kCudaInvalidValue);
  CHECK(cuda.mem_free(pointer) == kCudaSuccess);
  CHECK(cuda.mem_free(pointer) == kCudaInvalidValue);
  CHECK(cuda.mem_free(0) == kCudaSuccess);
  void* host = nullptr;
  CHECK(cuda.mem_alloc_host(&host, 100) == kCudaSuccess);
  CHECK(cuda.mem_free_host(host) == kCudaSuccess);
  CHECK(cuda.mem_free_host(host) == kCudaInvalidValue);
  CHECK(cuda.mem_alloc_host(&host, 0) == kCudaInvalidValue);
  CHECK(cuda.mem_alloc_host(&host, ~std::size_t{0}) == kCudaOutOfMemory);
}

TEST_CASE("copies and fills stay inside their allocation") {
  const OnDevice on;
  const CudaTable& cuda = on.cuda;
  const CUdeviceptr pointer = on.allocate(100);
  const CUdeviceptr other = on.allocate(100);
  char bytes[200] = {};
  CHECK(cuda.memcpy_htod(pointer, bytes, 100) == kCudaSuccess);
  CHECK(cuda.memcpy_htod(pointer, bytes, 101) == kCudaInvalidValue);
  CHECK(cuda.memcpy_htod(pointer + 100, bytes, 1) == kCudaInvalidValue);
  CHECK(cuda.memcpy_htod(pointer - 1, bytes, 1) == kCudaInvalidValue);
  CHECK(cuda.memcpy_htod(pointer, nullptr, 4) == kCudaInvalidValue);
  CHECK(cuda.memcpy_htod(0, bytes, 4) == kCudaInvalidValue);
  CHECK(cuda.memcpy_dtoh(bytes, pointer, 101) == kCudaInvalidValue);
  CHECK(cuda.memcpy_dtoh(bytes, pointer, ~std::size_t{0}) == kCudaInvalidValue);
  CHECK(cuda.memcpy_dtod_async(other, pointer, 100, nullptr) == kCudaSuccess);
  CHECK(cuda.memcpy_dtod_async(other, pointer + 1, 100, nullptr) == kCudaInvalidValue);
  CHECK(cuda.memset_d32_async(pointer, 1, 25, nullptr) == kCudaSuccess);
  CHECK(cuda.memset_d32_async(pointer, 1, 26, nullptr) == kCudaInvalidValue);
  CHECK(cuda.memset_d32_async(pointer + 2, 1, 1, nullptr) == kCudaInvalidValue);
  CHECK(cuda.memset_d32_async(pointer, 1, std::size_t{1} << 62, nullptr) == kCudaInvalidValue);
  CHECK(cuda.memset_d8_async(pointer, 1, 100, nullptr) == kCudaSuccess);
  CHECK(cuda.memcpy_htod(pointer, bytes, 0) == kCudaSuccess);
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

TEST_CASE("events: what has no time cannot be measured") {
  const OnDevice on;
  const CudaTable& cuda = on.cuda;
  CUevent timed = nullptr;
  CUevent untimed = nullptr;
  CUevent never = nullptr;
  REQUIRE(cuda.event_create(&timed, kEventDefault) == kCudaSuccess);
  REQUIRE(cuda.event_create(&untimed, kEventDisableTiming) == kCudaSuccess);
  REQUIRE(cuda.event_create(&never, kEventDefault) == kCudaSuccess);
  CHECK(cuda.event_record(timed, nullptr) == kCudaSuccess);
  CHECK(cuda.event_record(untimed, nullptr) == kCudaSuccess);
  float millis = -1;
  CHECK(cuda.event_elapsed_time(&millis, timed, timed) == kCudaSuccess);
  CHECK(millis == 0);
  CHECK(cuda.event_elapsed_time(&millis, timed, untimed) == kCudaInvalidHandle);
  CHECK(cuda.event_elapsed_time(&millis, timed, never) == kCudaInvalidHandle);
  CHECK(cuda.event_query(never) == kCudaSuccess);
  CHECK(cuda.stream_wait_event(nullptr, never, 0) == kCudaSuccess);
  for (const CUevent event : {timed, untimed, never}) {
    CHECK(cuda.event_destroy(event) == kCudaSuccess);
  }
}

TEST_CASE("images: binaries, other architectures and broken text, each with a reason") {
  const OnDevice on;
  const CudaTable& cuda = on.cuda;
  CUmodule module = nullptr;
  CHECK(cuda.module_load_data(&module, nullptr) == kCudaInvalidValue);
  CHECK(cuda.module_load_data(&module,
                              "\x7f"
                              "ELF\x02\x01\x01") == kCudaNoBinaryForGpu);
  CHECK(on.message().find("cubin") != std::string::npos);
  CHECK(cuda.module_load_data(&module, "hello") == kCudaInvalidImage);
  CHECK(cuda.module_load_data(&module, ".version 8.0\n.target sm_90a\n.address_size 64\n") ==
        kCudaNoBinaryForGpu);
  CHECK(on.message().find("PTX for sm_90a does not run on sm_80") != std::string::npos);
  CHECK(cuda.module_load_data(&module, ".version 7.0\n.target sm_80\n.address_size 64\n???") ==
        kCudaInvalidPtx);
  CHECK(on.message().find("line 4") != std::string::npos);
  CHECK(module == nullptr);

  const OnDevice hopper(first_ordinal("sm_90a"));
  hopper.cuda.module_unload(hopper.load());  // PTX for sm_80 runs on what is newer
  CHECK(
      cuda.module_load_data(&module,
                            "// a comment: .target sm_100\n/* and .target sm_100a */ .version 8.0\n"
                            ".target sm_90a, debug\n.address_size 64\n") == kCudaSuccess);
  CHECK(cuda.module_load_data(&module, ".version 8.0\n.target sm_100\n") == kCudaNoBinaryForGpu);
}

TEST_CASE("launches are checked before they are queued") {
  const OnDevice on;
  const CudaTable& cuda = on.cuda;
  const CUfunction function = on.function(on.load(), "scale");
  CUdeviceptr pointer = on.allocate(4);
  on.write(pointer, 1);
  float factor = 2;
  void* parameters[] = {&pointer, &factor};
  const auto launch = [&](unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                          unsigned bz, unsigned shared) {
    return cuda.launch_kernel(function, gx, gy, gz, bx, by, bz, shared, nullptr, parameters,
                              nullptr);
  };
  CHECK(launch(0, 1, 1, 1, 1, 1, 0) == kCudaInvalidValue);
  CHECK(launch(0x80000000u, 1, 1, 1, 1, 1, 0) == kCudaInvalidValue);
  CHECK(launch(1, 65536, 1, 1, 1, 1, 0) == kCudaInvalidValue);
  CHECK(launch(1, 1, 65536, 1, 1, 1, 0) == kCudaInvalidValue);
  CHECK(launch(1, 1, 1, 0, 1, 1, 0) == kCudaInvalidValue);
  CHECK(launch(1, 1, 1, 1025, 1, 1, 0) == kCudaInvalidValue);
  CHECK(launch(1, 1, 1, 1, 1, 65, 0) == kCudaInvalidValue);
  CHECK(launch(1, 1, 1, 64, 32, 1, 0) == kCudaInvalidValue);
  CHECK(launch(1, 1, 1, 1, 1, 1, 49153) == kCudaInvalidValue);
  CHECK(cuda.func_set_attribute(function, kFunctionMaxDynamicSharedBytes, 166913) ==
        kCudaInvalidValue);
  CHECK(cuda.func_set_attribute(function, kFunctionMaxDynamicSharedBytes, -1) == kCudaInvalidValue);
  CHECK(cuda.func_set_attribute(function, kFunctionMaxDynamicSharedBytes, 166912) == kCudaSuccess);
  CHECK(launch(1, 1, 1, 1, 1, 1, 166912) == kCudaSuccess);
  CHECK(on.read(pointer) == 2);
  CHECK(cuda.launch_kernel(function, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr) ==
        kCudaInvalidValue);
  void* with_null[] = {&pointer, nullptr};
  CHECK(cuda.launch_kernel(function, 1, 1, 1, 1, 1, 1, 0, nullptr, with_null, nullptr) ==
        kCudaInvalidValue);
}

TEST_CASE("parameters may be packed by the caller") {
  const OnDevice on;
  const CudaTable& cuda = on.cuda;
  const CUfunction function = on.function(on.load(), "scale");
  const CUdeviceptr pointer = on.allocate(4);
  on.write(pointer, 5);
  struct Packed {
    CUdeviceptr pointer;
    float factor;
  } packed = {pointer, 3};
  std::size_t bytes = 12;
  void* extra[] = {reinterpret_cast<void*>(1), &packed, reinterpret_cast<void*>(2), &bytes,
                   nullptr};
  CHECK(cuda.launch_kernel(function, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, extra) == kCudaSuccess);
  CHECK(on.read(pointer) == 15);
  bytes = 11;
  CHECK(cuda.launch_kernel(function, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, extra) ==
        kCudaInvalidValue);
  void* parameters[] = {&packed.pointer, &packed.factor};
  bytes = 12;
  CHECK(cuda.launch_kernel(function, 1, 1, 1, 1, 1, 1, 0, nullptr, parameters, extra) ==
        kCudaInvalidValue);
}

TEST_CASE("a fault breaks the context until it is cleared") {
  const OnDevice on;
  const CudaTable& cuda = on.cuda;
  const CUmodule module = on.load();
  const CUfunction stray = on.function(module, "stray");
  const CUfunction scale = on.function(module, "scale");
  const CUdeviceptr pointer = on.allocate(4);
  on.write(pointer, 1);
  CUdeviceptr nowhere = 64;
  void* parameters[] = {&nowhere};
  CHECK(cuda.launch_kernel(stray, 1, 1, 1, 1, 1, 1, 0, nullptr, parameters, nullptr) ==
        kCudaSuccess);
  CHECK(cuda.ctx_synchronize() == kCudaIllegalAddress);
  CHECK(on.scale(scale, pointer, 2, nullptr) == kCudaIllegalAddress);
  CHECK(cuda.stream_synchronize(nullptr) == kCudaIllegalAddress);
  CUdeviceptr more = 0;
  CHECK(cuda.mem_alloc(&more, 4) == kCudaIllegalAddress);
  CHECK(on.message().find("\"kernel\":\"stray\"") != std::string::npos);
  char cut[8] = {};
  CHECK(cuda.simulator_last_fault(on.device, cut, sizeof(cut)) == kCudaSuccess);
  CHECK(cut[7] == '\0');
  {
    const OnDevice other(1);  // another device is untouched
    other.cuda.mem_free(other.allocate(4));
  }
  SimulatorCounters counters;
  CHECK(cuda.simulator_counters(on.device, &counters, 0) == kCudaSuccess);
  CHECK(counters.faults >= 1);
  CHECK(cuda.simulator_clear_fault(on.device) == kCudaSuccess);
  CHECK(on.scale(scale, pointer, 2, nullptr) == kCudaSuccess);
  CHECK(on.read(pointer) == 2);
  CHECK(cuda.mem_free(pointer) == kCudaSuccess);
}

TEST_CASE("a caller with an older or newer struct reads and writes what both know") {
  const OnDevice on;
  SimulatorOptions options;
  options.seed = 9;
  options.bytes = offsetof(SimulatorOptions, threads);
  options.threads = 3;  // beyond what this caller knows
  CHECK(on.cuda.simulator_set_options(on.device, &options) == kCudaSuccess);
  SimulatorOptions now;
  CHECK(on.cuda.simulator_get_options(on.device, &now) == kCudaSuccess);
  CHECK(now.seed == 9);
  CHECK(now.threads == 0);
  options.bytes = 0;
  CHECK(on.cuda.simulator_set_options(on.device, &options) == kCudaInvalidValue);
  now = {};
  CHECK(on.cuda.simulator_set_options(on.device, &now) == kCudaSuccess);
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

}  // namespace
}  // namespace annulus::sim
