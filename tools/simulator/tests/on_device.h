#ifndef ANNULUS_SIMULATOR_TESTS_ON_DEVICE_H_
#define ANNULUS_SIMULATOR_TESTS_ON_DEVICE_H_

#include <doctest/doctest.h>

#include <string>

#include "simulator/driver/driver.h"
#include "support/kernels.h"

namespace annulus::simulator {

using namespace annulus::abi;

// A driver, with the primary context of a device current on its thread.
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
  // Multiplies the float at `pointer` by `factor`, on `stream`.
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

}  // namespace annulus::simulator

#endif  // ANNULUS_SIMULATOR_TESTS_ON_DEVICE_H_
