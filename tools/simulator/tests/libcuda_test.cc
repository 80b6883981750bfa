// The simulator's libcuda.so.1, opened like any other driver.

#include <dlfcn.h>
#include <doctest/doctest.h>

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "abi/check.h"
#include "abi/libraries.h"
#include "base/env.h"
#include "device/buffer.h"
#include "device/module.h"
#include "support/kernels.h"

namespace annulus::device {
namespace {

abi::LibrarySearch only_the_simulator() {
  abi::LibrarySearch search;
  search.first = {ANNULUS_LIBCUDA_FOLDER};
  search.loader = false;
  return search;
}

TEST_CASE("it is found by ANNULUS_LIBRARY_PATH, lacks nothing and is known to be simulated") {
  const abi::CudaLibrary cuda = abi::open_cuda(only_the_simulator());
  CHECK(cuda.report.simulated);
  CHECK(cuda.report.absent.empty());
  CHECK(cuda.report.version_text == "13.0");
}

TEST_CASE("a kernel runs behind it") {
  const auto driver = std::make_shared<Driver>(abi::open_cuda(only_the_simulator()));
  CHECK(driver->simulator_version() >= 1);
  const ContextPointer context = Context::retain(driver, 0);
  CHECK(context->info().simulated);
  const std::vector<float> five = {5};
  const Buffer value = upload<float>(context, five);
  const Function scale = Module::load(context, test::kKernels)->function("scale");
  const abi::CUdeviceptr pointer = value.address();
  const float factor = 2;
  launch(scale, {1}, {1}, 0, nullptr, {&pointer, &factor});
  float result = 0;
  copy_to_host(*context, &result, value.address(), sizeof(result));
  CHECK(result == 10);
}

TEST_CASE("NVRTC compiles beside it: it looks into any libcuda.so.1 that is loaded") {
  const auto driver = std::make_shared<Driver>(abi::open_cuda(only_the_simulator()));
  const abi::NvrtcLibrary nvrtc = abi::find_nvrtc(abi::default_search(base::read_environment()));
  if (!nvrtc.report.usable()) {
    MESSAGE("no NVRTC here: " << nvrtc.report.problem);
    return;
  }
  const abi::NvrtcTable& table = nvrtc.table;
  abi::NvrtcProgram program = nullptr;
  const char* source = "extern \"C\" __global__ void twice(float* p) { *p *= 2; }";
  const char* const options[] = {"--gpu-architecture=compute_80"};
  abi::check(table, table.create_program(&program, source, "twice.cu", 0, nullptr, nullptr),
             "nvrtcCreateProgram");
  abi::check(table, table.compile_program(program, 1, options), "nvrtcCompileProgram");
  std::size_t bytes = 0;
  abi::check(table, table.get_ptx_size(program, &bytes), "nvrtcGetPTXSize");
  std::string ptx(bytes, '\0');
  abi::check(table, table.get_ptx(program, ptx.data()), "nvrtcGetPTX");
  abi::check(table, table.destroy_program(&program), "nvrtcDestroyProgram");

  const ContextPointer context = Context::retain(driver, 0);
  const std::vector<float> five = {5};
  const Buffer value = upload<float>(context, five);
  const abi::CUdeviceptr pointer = value.address();
  launch(Module::load(context, ptx)->function("twice"), {1}, {1}, 0, nullptr, {&pointer});
  float result = 0;
  copy_to_host(*context, &result, value.address(), sizeof(result));
  CHECK(result == 10);
}

TEST_CASE("functions are found by name and version") {
  std::string problem;
  const abi::SharedLibrary library(ANNULUS_LIBCUDA_FOLDER "/libcuda.so.1", &problem);
  REQUIRE(library);
  using GetProcAddress = abi::CUresult (*)(const char*, void**, int, unsigned long long, int*);
  const auto get = reinterpret_cast<GetProcAddress>(library.symbol("cuGetProcAddress_v2"));
  REQUIRE((get != nullptr));
  void* address = nullptr;
  int status = -1;
  CHECK(get("cuMemAlloc", &address, 12000, 0, &status) == abi::kCudaSuccess);
  CHECK(address != nullptr);
  CHECK(status == 0);
  using Entry = int (*)(const char*, void**);
  const auto entry = reinterpret_cast<Entry>(library.symbol("annulusSimulatorEntry"));
  REQUIRE((entry != nullptr));
  const auto named = [&](const char* name) {
    void* found = nullptr;
    CHECK(entry(name, &found) == abi::kCudaSuccess);
    return found;
  };
  CHECK(get("cuCtxCreate", &address, 11000, 0, &status) == abi::kCudaSuccess);
  CHECK(address == named("cuCtxCreate"));
  CHECK(get("cuCtxCreate", &address, 12000, 0, &status) == abi::kCudaSuccess);
  CHECK(address == named("cuCtxCreate_v3"));
  CHECK(get("cuCtxCreate", &address, 13000, 0, &status) == abi::kCudaSuccess);
  CHECK(address == named("cuCtxCreate_v4"));
  CHECK(get("cuGetProcAddress", &address, 13000, 0, nullptr) == abi::kCudaSuccess);
  CHECK(address == named("cuGetProcAddress_v2"));
  CHECK(entry("cuNoSuchThing", &address) == abi::kCudaNotFound);
  CHECK(address == nullptr);
  CHECK(entry(nullptr, &address) == abi::kCudaInvalidValue);
  CHECK(get("cuNoSuchThing", &address, 13000, 0, &status) == abi::kCudaSuccess);
  CHECK(address == nullptr);
  CHECK(status == 1);
  CHECK(get("cuNoSuchThing", &address, 13000, 0, nullptr) == abi::kCudaNotFound);
  CHECK(get(nullptr, &address, 13000, 0, &status) == abi::kCudaInvalidValue);
  // Absent functions are found too. Flag 2 selects the functions for a default stream per thread.
  CHECK(get("cuTexRefCreate", &address, 13000, 0, &status) == abi::kCudaSuccess);
  CHECK(address == named("cuTexRefCreate"));
  CHECK(get("cuStreamQuery", &address, 13000, 2, &status) == abi::kCudaSuccess);
  CHECK(address == named("cuStreamQuery_ptsz"));
  CHECK(get("cuMemcpy", &address, 13000, 2, &status) == abi::kCudaSuccess);
  CHECK(address == named("cuMemcpy_ptds"));
  CHECK(get("cuCtxGetId", &address, 13000, 2, &status) == abi::kCudaSuccess);
  // No internal symbol is exported.
  CHECK(library.symbol("_ZN7annulus9simulator15make_cuda_tableEv") == nullptr);
}

// The threads of the pools run code of the library until the process ends.
TEST_CASE("dlclose leaves the libraries mapped") {
  for (const char* path : {ANNULUS_LIBCUDA_FOLDER "/libcuda.so.1", ANNULUS_LIBRARY}) {
    CAPTURE(path);
    void* const library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    REQUIRE_MESSAGE(library != nullptr, dlerror());
    CHECK(dlclose(library) == 0);
    CHECK(dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD) != nullptr);
  }
}

}  // namespace
}  // namespace annulus::device
