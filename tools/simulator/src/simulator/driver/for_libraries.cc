#include "simulator/driver/for_libraries.h"

#include <utility>

#include "simulator/driver/objects/state.h"

namespace annulus::simulator::driver {

std::shared_ptr<Context> retain_primary_context(abi::CUdevice device) {
  return device_at(device).retain_primary();
}

abi::CUdevice device_of(const Context& context) { return context.device->ordinal(); }

std::shared_ptr<Stream> find_stream(const std::shared_ptr<Context>& context, abi::CUstream stream) {
  auto& stack = context_stack();
  stack.push_back(context);
  try {
    std::shared_ptr<Stream> found = find_stream(stream);
    stack.pop_back();
    return found;
  } catch (...) {
    stack.pop_back();
    throw;
  }
}

std::string text_of(const Stream& stream) { return stream.text(); }
ItemPointer last_item(const Stream& stream) { return stream.last(); }
ItemPointer submit(Stream& stream, Work work) { return stream.submit(std::move(work)); }

bool done(const ItemPointer& item) { return state().queue.done(item); }
void finish(const ItemPointer& item) { state().queue.finish(item); }
void notify_meetings() { state().queue.changed(); }
void step(const Context& context) { state().queue.step(context); }

void link_with_device(const Context& context, abi::CUdevice device) {
  const Device& other = device_at(device);
  for (const auto& one : state().contexts.all()) {
    if (one->device == &other) state().queue.link(context, *one);
  }
}

void serve(const Context& context, const std::atomic<bool>& ended) {
  state().queue.serve(context, ended);
}

}  // namespace annulus::simulator::driver
