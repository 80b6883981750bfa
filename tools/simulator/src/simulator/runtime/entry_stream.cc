// Streams, events, and functions of the host in a stream.

#include <memory>

#include "simulator/runtime/entries.h"
#include "simulator/runtime/thread.h"

namespace annulus::simulator::runtime::entry {
namespace {

struct Callback {
  StreamCallback function;
  CUstream stream;
  void* data;
};

void call_back(void* data) {
  const std::unique_ptr<Callback> callback(static_cast<Callback*>(data));
  callback->function(callback->stream, cudaSuccess, callback->data);
}

}  // namespace

Error stream_make(CUstream* stream) { return stream_make_with_flags(stream, 0); }

Error stream_make_with_flags(CUstream* stream, unsigned flags) {
  enter();
  return driver().stream_create(stream, flags);
}

Error stream_get_device(CUstream stream, int* device) {
  if (device == nullptr) return cudaErrorInvalidValue;
  enter();
  CUcontext context = nullptr;
  need(driver().stream_get_ctx(resolve(stream), &context));
  need(driver().ctx_push_current(context));
  const CUresult code = driver().ctx_get_device(device);
  driver().ctx_pop_current(&context);
  return code;
}

// The status of the callback is always success, because work after a fault does not run.
Error stream_add_callback(CUstream stream, StreamCallback callback, void* data, unsigned flags) {
  if (callback == nullptr || flags != 0) return cudaErrorInvalidValue;
  enter();
  auto owned = std::make_unique<Callback>(Callback{callback, stream, data});
  const CUresult code = driver().launch_host_func(resolve(stream), call_back, owned.get());
  if (code == cudaSuccess) static_cast<void>(owned.release());
  return code;
}

Error stream_attach_mem(CUstream stream, void* pointer, std::size_t bytes, unsigned flags) {
  enter();
  return driver().stream_attach_mem_async(resolve(stream), reinterpret_cast<CUdeviceptr>(pointer),
                                          bytes, flags);
}

Error host_func(CUstream stream, HostFunction function, void* data) {
  enter();
  return driver().launch_host_func(resolve(stream), function, data);
}

Error event_make(CUevent* event) { return event_make_with_flags(event, 0); }

Error event_make_with_flags(CUevent* event, unsigned flags) {
  enter();
  return driver().event_create(event, flags);
}

}  // namespace annulus::simulator::runtime::entry
