// Launches and asynchronous copies must allocate no host memory. This program counts every operator
// new. The functions of the driver do nothing.

#include <doctest/doctest.h>

#include <cstdlib>
#include <new>

#include "device/buffer.h"
#include "device/module.h"
#include "device/stream.h"

namespace {
thread_local int allocations = 0;
}

void* operator new(std::size_t bytes) {
  ++allocations;
  if (void* memory = std::malloc(bytes)) return memory;
  throw std::bad_alloc();
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

namespace annulus::device {
namespace {

// Makes a function of the table return success without doing anything.
template <typename... Parameters>
void succeed(abi::CUresult (*&slot)(Parameters...)) {
  slot = [](Parameters...) -> abi::CUresult { return abi::kCudaSuccess; };
}

abi::CudaTable idle_table() {
  abi::CudaTable table;
#define REQUIRED(member, symbol, parameters) succeed(table.member);
#define OPTIONAL(member, symbol, parameters)
#include "abi/cuda.def"
  table.device_get_count = [](int* count) -> abi::CUresult {
    *count = 1;
    return abi::kCudaSuccess;
  };
  table.module_get_function = [](abi::CUfunction* function, abi::CUmodule,
                                 const char*) -> abi::CUresult {
    *function = reinterpret_cast<abi::CUfunction>(1);
    return abi::kCudaSuccess;
  };
  return table;
}

TEST_CASE("queueing work allocates nothing") {
  const auto driver = std::make_shared<Driver>(idle_table(), "idle");
  const ContextPointer context = Context::retain(driver, 0);
  const Stream stream(context);
  const Event event(context);
  const Function function = Module::load(context, "code")->function("kernel");
  const abi::CUdeviceptr pointer = 0;
  const int count = 0;
  char host[16] = {};
  allocations = 0;
  launch(function, {1}, {32}, 0, stream.handle(), {&pointer, &count});
  copy_to_device_async(*context, 256, host, sizeof(host), stream.handle());
  copy_to_host_async(*context, host, 256, sizeof(host), stream.handle());
  fill_words_async(*context, 256, 0, 4, stream.handle());
  event.record(stream.handle());
  wait(*context, nullptr, event);
  stream.synchronize();
  const int counted = allocations;
  CHECK(counted == 0);
}

}  // namespace
}  // namespace annulus::device
