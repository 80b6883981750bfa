// Functions of streams and launches that only other programs use (provided.def).

#include "simulator/driver/capture.h"
#include "simulator/driver/entries.h"
#include "simulator/driver/graph.h"
#include "simulator/driver/state.h"

namespace annulus::simulator::driver::entry {

CUresult launch_host_func(CUstream stream, void (*function)(void*), void* data) {
  return guarded([&]() -> CUresult {
    NodeParameters node;
    node.type = kNodeHost;
    node.host = {function, data};
    find_stream(stream)->submit(work_of(std::move(node)));
    return kCudaSuccess;
  });
}

CUresult occupancy_max_active_blocks_with_flags(int* blocks, CUfunction function, int threads,
                                                std::size_t dynamic_shared_bytes, unsigned) {
  return occupancy_max_active_blocks(blocks, function, threads, dynamic_shared_bytes);
}

// All streams have one priority.
CUresult stream_create_with_priority(CUstream* stream, unsigned flags, int) {
  return stream_create(stream, flags);
}

CUresult stream_get_flags(CUstream stream, unsigned* flags) {
  return guarded([&]() -> CUresult {
    const auto on = find_stream(stream);
    if (flags == nullptr) return kCudaInvalidValue;
    *flags = on->kind() == Stream::Kind::kNonBlocking ? unsigned{kStreamNonBlocking} : 0u;
    return kCudaSuccess;
  });
}

CUresult stream_get_priority(CUstream stream, int* priority) {
  return guarded([&]() -> CUresult {
    find_stream(stream);
    if (priority == nullptr) return kCudaInvalidValue;
    *priority = 0;
    return kCudaSuccess;
  });
}

CUresult stream_get_ctx(CUstream stream, CUcontext* context) {
  return guarded([&]() -> CUresult {
    const auto on = find_stream(stream);
    if (context == nullptr) return kCudaInvalidValue;
    *context = on->context()->handle();
    return kCudaSuccess;
  });
}

// No stream is one of a green context.
CUresult stream_get_ctx_v2(CUstream stream, CUcontext* context, CUgreenCtx* green) {
  if (green != nullptr) *green = nullptr;
  return stream_get_ctx(stream, context);
}

// CUstreamCaptureStatus: 0 none, 1 active, 2 invalidated.
CUresult stream_is_capturing(CUstream stream, int* status) {
  return guarded([&]() -> CUresult {
    const auto capture = find_stream(stream)->capture();
    if (status == nullptr) return kCudaInvalidValue;
    *status = 0;
    if (capture == nullptr) return kCudaSuccess;
    std::lock_guard lock(capture->mutex);
    *status = capture->invalid ? 2 : 1;
    return kCudaSuccess;
  });
}

CUresult event_record_with_flags(CUevent event, CUstream stream, unsigned flags) {
  return flags != 0 ? kCudaNotSupported : event_record(event, stream);
}

}  // namespace annulus::simulator::driver::entry
