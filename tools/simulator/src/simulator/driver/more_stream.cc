// Streams: callbacks, attributes, numbers; and waits of whole contexts.

#include <cstring>

#include "simulator/driver/entries.h"
#include "simulator/driver/graph.h"
#include "simulator/driver/state.h"

namespace annulus::simulator::driver::entry {

// Like cuLaunchHostFunc. No callback runs behind a fault, as no other work of the context does.
CUresult stream_add_callback(CUstream stream, void (*callback)(CUstream, CUresult, void*),
                             void* data, unsigned flags) {
  return guarded([&]() -> CUresult {
    const auto on = find_stream(stream);
    if (callback == nullptr || flags != 0) return kCudaInvalidValue;
    if (on->capture() != nullptr) return kCudaCaptureUnsupported;
    Work work = make_work("cuStreamAddCallback",
                          [callback, stream, data](const OperationPointer& operation) {
                            state().detector.order.observe(*operation);
                            callback(stream, kCudaSuccess, data);
                          });
    work.on_host = true;
    on->submit(std::move(work));
    return kCudaSuccess;
  });
}

// Attributes are hints (which part of the cache is kept, in what order waits wake) and are given
// back as they were set.
CUresult stream_set_attribute(CUstream stream, int attribute, const void* value) {
  return guarded([&]() -> CUresult {
    const auto on = find_stream(stream);
    if (value == nullptr) return kCudaInvalidValue;
    on->set_attribute(attribute, value);
    return kCudaSuccess;
  });
}

CUresult stream_get_attribute(CUstream stream, int attribute, void* value) {
  return guarded([&]() -> CUresult {
    const auto on = find_stream(stream);
    if (value == nullptr) return kCudaInvalidValue;
    on->get_attribute(attribute, value);
    return kCudaSuccess;
  });
}

CUresult stream_copy_attributes(CUstream to, CUstream from) {
  return guarded([&]() -> CUresult {
    find_stream(to)->copy_attributes(*find_stream(from));
    return kCudaSuccess;
  });
}

CUresult stream_get_id(CUstream stream, unsigned long long* id) {
  return guarded([&]() -> CUresult {
    const auto on = find_stream(stream);
    if (id == nullptr) return kCudaInvalidValue;
    *id = reinterpret_cast<std::uintptr_t>(on.get());
    return kCudaSuccess;
  });
}

CUresult stream_get_device(CUstream stream, CUdevice* device) {
  return guarded([&]() -> CUresult {
    const auto on = find_stream(stream);
    if (device == nullptr) return kCudaInvalidValue;
    *device = on->context()->device->ordinal();
    return kCudaSuccess;
  });
}

}  // namespace annulus::simulator::driver::entry
