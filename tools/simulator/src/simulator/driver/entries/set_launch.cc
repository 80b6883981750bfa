// Launches in the style of before CUDA 4: a program first sets the shape and the parameters on the
// function.

#include <algorithm>
#include <cstring>

#include "simulator/driver/entries/entries.h"
#include "simulator/driver/objects/state.h"

namespace annulus::simulator::driver::entry {
namespace {

constexpr std::size_t kMaxParameterBytes = 4096;

CUresult set_parameter(CUfunction function, int offset, const void* bytes, std::size_t count) {
  const auto found = find_function(function);
  if (bytes == nullptr || offset < 0) return kCudaInvalidValue;
  const std::size_t end = static_cast<std::size_t>(offset) + count;
  if (end > kMaxParameterBytes) return kCudaInvalidValue;
  std::lock_guard lock(found->mutex);
  auto& all = found->set.parameters;
  all.resize(std::max(all.size(), end));
  std::memcpy(all.data() + offset, bytes, count);
  return kCudaSuccess;
}

CUresult launch_as_set(CUfunction function, int width, int height, CUstream stream) {
  return guarded([&]() -> CUresult {
    const auto found = find_function(function);
    if (width <= 0 || height <= 0) return kCudaInvalidValue;
    SetLaunch set;
    {
      std::lock_guard lock(found->mutex);
      set = found->set;
    }
    std::size_t bytes = set.parameters.size();
    void* extra[] = {reinterpret_cast<void*>(1), set.parameters.data(), reinterpret_cast<void*>(2),
                     &bytes, nullptr};
    return launch_kernel(function, static_cast<unsigned>(width), static_cast<unsigned>(height), 1,
                         set.block[0], set.block[1], set.block[2], set.dynamic_shared_bytes, stream,
                         nullptr, extra);
  });
}

}  // namespace

CUresult func_set_block_shape(CUfunction function, int x, int y, int z) {
  return guarded([&]() -> CUresult {
    const auto found = find_function(function);
    if (x <= 0 || y <= 0 || z <= 0) return kCudaInvalidValue;
    std::lock_guard lock(found->mutex);
    const int shape[] = {x, y, z};
    std::copy_n(shape, 3, found->set.block);
    return kCudaSuccess;
  });
}

CUresult func_set_shared_size(CUfunction function, unsigned bytes) {
  return guarded([&]() -> CUresult {
    const auto found = find_function(function);
    std::lock_guard lock(found->mutex);
    found->set.dynamic_shared_bytes = bytes;
    return kCudaSuccess;
  });
}

CUresult param_set_size(CUfunction function, unsigned bytes) {
  return guarded([&]() -> CUresult {
    const auto found = find_function(function);
    if (bytes > kMaxParameterBytes) return kCudaInvalidValue;
    std::lock_guard lock(found->mutex);
    found->set.parameters.resize(bytes);
    return kCudaSuccess;
  });
}

CUresult param_seti(CUfunction function, int offset, unsigned value) {
  return guarded([&] { return set_parameter(function, offset, &value, sizeof value); });
}

CUresult param_setf(CUfunction function, int offset, float value) {
  return guarded([&] { return set_parameter(function, offset, &value, sizeof value); });
}

CUresult param_setv(CUfunction function, int offset, void* value, unsigned bytes) {
  return guarded([&] { return set_parameter(function, offset, value, bytes); });
}

CUresult launch(CUfunction function) { return launch_as_set(function, 1, 1, nullptr); }

CUresult launch_grid(CUfunction function, int width, int height) {
  return launch_as_set(function, width, height, nullptr);
}

CUresult launch_grid_async(CUfunction function, int width, int height, CUstream stream) {
  return launch_as_set(function, width, height, stream);
}

}  // namespace annulus::simulator::driver::entry
