// Libraries and kernels: modules that belong to no context.

#include <doctest/doctest.h>

#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "on_device.h"
#include "simulator/driver/entries/entries.h"

namespace annulus::simulator {
namespace {

namespace entry = driver::entry;
using driver::CUkernel;
using driver::CUlibrary;

CUlibrary load(const char* ptx) {
  CUlibrary library = nullptr;
  REQUIRE(entry::library_load_data(&library, ptx, nullptr, nullptr, 0, nullptr, nullptr, 0) ==
          kCudaSuccess);
  return library;
}

CUkernel kernel_of(CUlibrary library, const char* name) {
  CUkernel kernel = nullptr;
  REQUIRE(entry::library_get_kernel(&kernel, library, name) == kCudaSuccess);
  return kernel;
}

constexpr const char* kCounter =
    ".version 8.0\n.target sm_80\n.address_size 64\n"
    ".visible .global .u32 total = 5;\n"
    ".visible .entry add(.param .u32 value, .param .u64 unused, .param .u8 last) {\n"
    "  .reg .b32 %value;\n"
    "  ld.param.u32 %value, [value];\n"
    "  red.global.add.u32 [total], %value;\n  ret;\n}\n"
    ".visible .entry nothing() { ret; }\n";

TEST_CASE("a kernel of a library is launched as it is, in each context") {
  const CudaTable cuda = make_cuda_table();
  REQUIRE(cuda.init(0) == kCudaSuccess);
  const CUlibrary library = load(kCounter);  // no context is current
  const CUkernel kernel = kernel_of(library, "add");
  CHECK(kernel_of(library, "add") == kernel);
  for (const int ordinal : {0, 1}) {
    const OnDevice on(ordinal);
    unsigned value = 10 + static_cast<unsigned>(ordinal);
    unsigned long long unused = 0;
    unsigned char last = 0;
    void* parameters[] = {&value, &unused, &last};
    const auto as_function = reinterpret_cast<CUfunction>(kernel);
    CHECK(cuda.launch_kernel(as_function, 1, 1, 1, 1, 1, 1, 0, nullptr, parameters, nullptr) ==
          kCudaSuccess);
    CUdeviceptr total = 0;
    std::size_t bytes = 0;
    CHECK(entry::library_get_global(&total, &bytes, library, "total") == kCudaSuccess);
    CHECK(bytes == 4);
    unsigned sum = 0;
    CHECK(cuda.memcpy_dtoh(&sum, total, sizeof sum) == kCudaSuccess);
    CHECK(sum == 15 + static_cast<unsigned>(ordinal));
    CUmodule module = nullptr;
    CUfunction function = nullptr;
    CUfunction same = nullptr;
    CHECK(entry::library_get_module(&module, library) == kCudaSuccess);
    CHECK(cuda.module_get_function(&function, module, "add") == kCudaSuccess);
    CHECK(entry::kernel_get_function(&same, kernel) == kCudaSuccess);
    CHECK(same == function);
    CHECK(entry::library_get_global(&total, &bytes, library, "none") == kCudaNotFound);
  }
  CHECK(entry::library_unload(library) == kCudaSuccess);
  CHECK(entry::library_unload(library) == kCudaInvalidHandle);
  const OnDevice on;
  CHECK(cuda.launch_kernel(reinterpret_cast<CUfunction>(kernel), 1, 1, 1, 1, 1, 1, 0, nullptr,
                           nullptr, nullptr) == kCudaInvalidHandle);
}

TEST_CASE("kernels of a library and functions of a module are listed, with their parameters") {
  const OnDevice on;
  const CUlibrary library = load(kCounter);
  unsigned count = 0;
  CHECK(entry::library_get_kernel_count(&count, library) == kCudaSuccess);
  CHECK(count == 2);
  std::vector<CUkernel> kernels(3);
  CHECK(entry::library_enumerate_kernels(kernels.data(), 3, library) == kCudaSuccess);
  CHECK(kernels[0] == kernel_of(library, "add"));
  CHECK(kernels[1] == kernel_of(library, "nothing"));
  CHECK(kernels[2] == nullptr);
  const char* name = nullptr;
  CHECK(entry::kernel_get_name(&name, kernels[1]) == kCudaSuccess);
  CHECK(std::string(name) == "nothing");
  CUlibrary owner = nullptr;
  CHECK(entry::kernel_get_library(&owner, kernels[0]) == kCudaSuccess);
  CHECK(owner == library);
  std::size_t offset = 0;
  std::size_t bytes = 0;
  CHECK(entry::kernel_get_param_info(kernels[0], 1, &offset, &bytes) == kCudaSuccess);
  CHECK(offset == 8);
  CHECK(bytes == 8);
  CHECK(entry::kernel_get_param_info(kernels[0], 2, &offset, nullptr) == kCudaSuccess);
  CHECK(offset == 16);
  CHECK(entry::kernel_get_param_info(kernels[0], 3, &offset, &bytes) == kCudaInvalidValue);

  const CUmodule module = on.load(kCounter);
  CHECK(entry::module_get_function_count(&count, module) == kCudaSuccess);
  CHECK(count == 2);
  CUfunction functions[2] = {};
  CHECK(entry::module_enumerate_functions(functions, 2, module) == kCudaSuccess);
  CHECK(functions[0] == on.function(module, "add"));
  CHECK(functions[1] == on.function(module, "nothing"));
  CHECK(entry::func_get_param_info(functions[0], 0, &offset, &bytes) == kCudaSuccess);
  CHECK(bytes == 4);
  int loaded = 0;
  CHECK(entry::func_is_loaded(&loaded, functions[0]) == kCudaSuccess);
  CHECK(loaded == 1);
  CHECK(entry::func_load(functions[0]) == kCudaSuccess);
  CHECK(entry::library_unload(library) == kCudaSuccess);
}

TEST_CASE("an attribute of a kernel is that of its functions on the device, made before or after") {
  const OnDevice on;
  const CUlibrary library = load(kCounter);
  const CUkernel kernel = kernel_of(library, "add");
  constexpr int kDynamic = kFunctionMaxDynamicSharedBytes;
  CUfunction function = nullptr;
  int value = 0;
  CHECK(entry::kernel_get_function(&function, kernel) == kCudaSuccess);
  CHECK(entry::kernel_set_attribute(kDynamic, 100000, kernel, 0) == kCudaSuccess);
  CHECK(on.cuda.func_get_attribute(&value, kDynamic, function) == kCudaSuccess);
  CHECK(value == 100000);
  CHECK(entry::kernel_get_attribute(&value, kDynamic, kernel, 0) == kCudaSuccess);
  CHECK(value == 100000);
  CHECK(entry::kernel_get_attribute(&value, kDynamic, kernel, 1) == kCudaSuccess);
  CHECK(value == 49152);
  CHECK(entry::kernel_set_attribute(kDynamic, 60000, kernel, 1) == kCudaSuccess);
  CHECK(entry::kernel_set_attribute(kDynamic, 1 << 20, kernel, 1) == kCudaInvalidValue);
  CHECK(entry::kernel_set_cache_config(kernel, 1, 1) == kCudaSuccess);
  CHECK(entry::kernel_set_cache_config(kernel, 1, 99) == kCudaInvalidDevice);
  {
    const OnDevice second(1);
    CHECK(entry::kernel_get_function(&function, kernel) == kCudaSuccess);
    CHECK(on.cuda.func_get_attribute(&value, kDynamic, function) == kCudaSuccess);
    CHECK(value == 60000);
  }
  CHECK(entry::library_unload(library) == kCudaSuccess);
}

TEST_CASE("what is no library or no kernel is refused with CUDA's codes") {
  const OnDevice on;
  CUlibrary library = nullptr;
  char log[256] = {};
  int names[] = {driver::kJitErrorLog, driver::kJitErrorLogBytes};
  void* values[] = {log, reinterpret_cast<void*>(sizeof(log))};
  const auto load_logged = [&](const char* text) {
    values[1] = reinterpret_cast<void*>(sizeof(log));
    return entry::library_load_data(&library, text, names, values, 2, nullptr, nullptr, 0);
  };
  CHECK(load_logged("nonsense") == kCudaInvalidImage);
  CHECK(std::strstr(log, "begin with .version") != nullptr);
  CHECK(load_logged(".version 8.0\n.target sm_80\n.visible .entry f( {") == kCudaInvalidPtx);
  CHECK(log[0] != '\0');
  CHECK(load_logged(".version 8.0\n.target sm_120\n") == kCudaNoBinaryForGpu);
  CHECK(std::strstr(log, "sm_120") != nullptr);
  int unknown = 7;
  CHECK(entry::library_load_data(&library, kCounter, nullptr, nullptr, 0, &unknown, nullptr, 1) ==
        kCudaInvalidValue);
  CHECK(entry::library_load_from_file(&library, "/no/such/file", nullptr, nullptr, 0, nullptr,
                                      nullptr, 0) == kCudaFileNotFound);
  // The library is for another device than the current one.
  library = load(".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry f() { ret; }\n");
  CUfunction function = nullptr;
  CUkernel kernel = kernel_of(library, "f");
  CHECK(entry::kernel_get_function(&function, kernel) == kCudaNoBinaryForGpu);
  CHECK(entry::library_get_kernel(&kernel, library, "g") == kCudaNotFound);
  CHECK(entry::kernel_get_function(&function, nullptr) == kCudaInvalidHandle);
  CUdeviceptr pointer = 0;
  CHECK(entry::library_get_managed(&pointer, nullptr, library, "g") == kCudaNotFound);
  CHECK(entry::library_unload(library) == kCudaSuccess);
}

TEST_CASE("a library is read from a file") {
  const OnDevice on;
  const std::string path = std::filesystem::temp_directory_path() / "annulus_library_test.ptx";
  std::ofstream(path) << kCounter;
  CUlibrary library = nullptr;
  CHECK(entry::library_load_from_file(&library, path.c_str(), nullptr, nullptr, 0, nullptr, nullptr,
                                      0) == kCudaSuccess);
  CHECK(kernel_of(library, "nothing") != nullptr);
  CHECK(entry::library_unload(library) == kCudaSuccess);
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace annulus::simulator
