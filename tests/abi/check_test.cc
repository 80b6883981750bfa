#include "abi/check.h"

#include <doctest/doctest.h>

#include <cstring>
#include <map>
#include <string>

#include "annulus/types.h"

namespace annulus::abi {
namespace {

// A table with the functions that check() itself calls.
CudaTable table_with_names() {
  CudaTable table;
  table.get_error_name = [](CUresult, const char** name) {
    *name = "CUDA_ERROR_SOMETHING";
    return static_cast<CUresult>(kCudaSuccess);
  };
  table.get_error_string = [](CUresult, const char** text) {
    *text = "something went wrong";
    return static_cast<CUresult>(kCudaSuccess);
  };
  return table;
}

Error error_of(const CudaTable& table, CUresult code) {
  try {
    check(table, code, "cuMemAlloc");
  } catch (const Error& error) {
    return error;
  }
  return {ErrorCode::kInternal, "nothing was thrown"};
}

TEST_CASE("success passes") { CHECK_NOTHROW(check(CudaTable{}, kCudaSuccess, "cuInit")); }

TEST_CASE("the message names the call, the code in words and the place") {
  const std::string message = error_of(table_with_names(), kCudaInvalidValue).what();
  CHECK(message.find("cuMemAlloc returned CUDA_ERROR_SOMETHING (1)") == 0);
  CHECK(message.find("something went wrong") != message.npos);
  CHECK(message.find("check_test.cc:") != message.npos);
}

TEST_CASE("the kind of the error follows the code") {
  const CudaTable table = table_with_names();
  CHECK(error_of(table, kCudaOutOfMemory).code() == ErrorCode::kOutOfMemory);
  CHECK(error_of(table, kCudaInvalidHandle).code() == ErrorCode::kDevice);
  for (const CUresult code : {700, 702, 710, 714, 715, 716, 717, 718, 719}) {
    CHECK(error_of(table, code).code() == ErrorCode::kFault);
  }
}

TEST_CASE("a driver that does not start has a remedy") {
  const std::map<int, const char*> remedies = {{34, "stub"},
                                               {46, "nvidia-smi"},
                                               {802, "nvidia-fabricmanager"},
                                               {803, "restart the machine"},
                                               {804, "cuda-compat"},
                                               {999, "nvidia-modprobe"}};
  for (const auto& [code, remedy] : remedies) {
    CHECK(std::strstr(error_of(table_with_names(), code).what(), remedy) != nullptr);
  }
}

TEST_CASE("a code the driver does not know is still an error with a number") {
  CudaTable table = table_with_names();
  table.get_error_name = [](CUresult, const char** name) {
    *name = nullptr;
    return static_cast<CUresult>(kCudaInvalidValue);
  };
  CHECK(std::strstr(error_of(table, 12345).what(), "unknown (12345)") != nullptr);
}

TEST_CASE("a sticky code carries the simulator's fault where there is one") {
  CudaTable table = table_with_names();
  CHECK(std::strstr(error_of(table, kCudaLaunchFailed).what(), "simulator") == nullptr);
  table.ctx_get_device = [](CUdevice* device) {
    *device = 3;
    return static_cast<CUresult>(kCudaSuccess);
  };
  table.simulator_last_fault = [](CUdevice device, char* json, std::size_t bytes) {
    CHECK(device == 3);
    std::strncpy(json, R"({"kind":"shared race","message":"shared race at x.cu:7"})", bytes);
    return static_cast<CUresult>(kCudaSuccess);
  };
  const std::string message = error_of(table, kCudaLaunchFailed).what();
  CHECK(message.find("the simulator reports: shared race at x.cu:7") != message.npos);
  CHECK(std::strstr(error_of(table, kCudaInvalidValue).what(), "simulator") == nullptr);
}

TEST_CASE("NVRTC's codes become compile errors where the source is at fault") {
  NvrtcTable table;
  table.get_error_string = [](NvrtcResult) -> const char* { return "NVRTC_ERROR_COMPILATION"; };
  try {
    check(table, kNvrtcCompilation, "nvrtcCompileProgram");
    FAIL("nothing was thrown");
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::kCompile);
    CHECK(std::strstr(error.what(), "NVRTC_ERROR_COMPILATION (6)") != nullptr);
  }
}

}  // namespace
}  // namespace annulus::abi
