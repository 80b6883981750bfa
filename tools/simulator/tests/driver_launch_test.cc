// Tests of modules and launches of the simulated driver: which calls are refused, and the state of
// a context after a fault.

#include <doctest/doctest.h>

#include <string>

#include "on_device.h"

namespace annulus::simulator {
namespace {

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
  hopper.cuda.module_unload(hopper.load());  // PTX for sm_80 runs on newer devices
  CHECK(
      cuda.module_load_data(&module,
                            "// a comment: .target sm_100\n/* and .target sm_100a */ .version 8.0\n"
                            ".target sm_90a, debug\n.address_size 64\n") == kCudaSuccess);
  CHECK(cuda.module_load_data(&module, ".version 8.0\n.target sm_100\n") == kCudaNoBinaryForGpu);
}

// Names of files may contain any bytes, while JSON is UTF-8.
TEST_CASE("a fault in a file whose name is no UTF-8 is reported like any other") {
  const OnDevice on;
  const CUmodule module = on.load(
      ".version 7.0\n.target sm_80\n.address_size 64\n.file 1 \"/h\xe9las.cu\"\n"
      ".visible .entry k() {\n.loc 1 7 0\ntrap;\n}\n");
  CHECK(on.cuda.launch_kernel(on.function(module, "k"), 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr,
                              nullptr) == kCudaSuccess);
  CHECK(on.cuda.ctx_synchronize() == kCudaLaunchFailed);
  CHECK(on.message().find("las.cu\",\"line\":7") != std::string::npos);
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
    const OnDevice other(1);  // another device still works
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

}  // namespace
}  // namespace annulus::simulator
