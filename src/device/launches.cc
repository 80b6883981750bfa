#include "device/launches.h"

#include <cstring>

#include "base/math.h"
#include "device/buffer.h"

namespace annulus::device {

void StreamSink::add(const Function& function, Extent grid, Extent block,
                     std::size_t dynamic_shared_bytes,
                     std::span<const LaunchParameter> parameters) {
  // The driver takes void** for historical reasons and does not write through the pointers.
  void* values[kMaxLaunchParameters];
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    values[i] = const_cast<void*>(parameters[i].value);
  }
  device::launch(function, grid, block, dynamic_shared_bytes, stream_, values);
}

void StreamSink::fill(const Context& context, void* address, unsigned value, std::size_t words) {
  fill_words_async(context, reinterpret_cast<abi::CUdeviceptr>(address), value, words, stream_);
}

void LaunchList::fill(const Context& context, void* address, unsigned value, std::size_t words) {
  Launch kept;
  kept.filled = address;
  kept.value = value;
  kept.words = words;
  launches_.push_back(std::move(kept));
  context_ = &context;
}

void LaunchList::add(const Function& function, Extent grid, Extent block,
                     std::size_t dynamic_shared_bytes,
                     std::span<const LaunchParameter> parameters) {
  const auto lines_of = [](const LaunchParameter& parameter) {
    return base::ceil_div(parameter.bytes, sizeof(Line));
  };
  std::size_t lines = 0;
  for (const LaunchParameter& parameter : parameters) lines += lines_of(parameter);
  Launch kept;
  kept.function = function;
  kept.grid = grid;
  kept.block = block;
  kept.dynamic_shared_bytes = dynamic_shared_bytes;
  kept.values = std::make_unique<Line[]>(lines);
  Line* at = kept.values.get();
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    std::memcpy(at, parameters[i].value, parameters[i].bytes);
    kept.parameters[i] = at;
    at += lines_of(parameters[i]);
  }
  launches_.push_back(std::move(kept));
  context_ = &function.context();
}

void LaunchList::run(abi::CUstream stream) const {
  if (launches_.empty()) return;
  const ContextScope scope(*context_);
  for (const Launch& each : launches_) {
    if (each.filled != nullptr) {
      fill_words_async(*context_, reinterpret_cast<abi::CUdeviceptr>(each.filled), each.value,
                       each.words, stream);
      continue;
    }
    // The driver does not write through the pointers.
    launch_in_scope(each.function, each.grid, each.block, each.dynamic_shared_bytes, stream,
                    const_cast<void**>(each.parameters.data()));
  }
}

}  // namespace annulus::device
