// Streams and events.

#include <cstring>
#include <string>

#include "simulator/driver/entries/entries.h"
#include "simulator/driver/objects/capture.h"
#include "simulator/driver/objects/graph.h"
#include "simulator/driver/objects/state.h"

namespace annulus::simulator::driver::entry {
namespace {

std::chrono::steady_clock::time_point time_of(Event& event) {
  std::lock_guard lock(event.mutex);
  if ((event.flags & kEventDisableTiming) != 0 || !event.recorded) {
    throw Refusal{kCudaInvalidHandle};
  }
  return event.time;
}

void refuse_captured(Event& event) {
  std::lock_guard lock(event.mutex);
  if (!event.capture.expired()) throw Refusal{kCudaCapturedEvent};
}

// Whether `item` has ended. If it has not, the call runs some work, so that a program that polls
// makes progress.
CUresult query(const Context& context, const ItemPointer& item) {
  if (state().queue.done(item)) {
    observe(item);
    if (context.lost != kCudaSuccess) return context.lost;
    return state().queue.take_refusal({&item, 1}, nullptr) ? kCudaOutOfMemory : kCudaSuccess;
  }
  state().queue.step(context);
  return kCudaNotReady;
}

}  // namespace

CUresult stream_create(CUstream* stream, unsigned flags) {
  return guarded([&]() -> CUresult {
    const auto context = live_context();
    if (stream == nullptr || (flags & ~kStreamNonBlocking) != 0) return kCudaInvalidValue;
    const auto kind =
        (flags & kStreamNonBlocking) != 0 ? Stream::Kind::kNonBlocking : Stream::Kind::kBlocking;
    int number = 0;
    {
      std::lock_guard lock(context->mutex);
      number = ++context->streams;
    }
    *stream = state().streams.add(std::make_shared<Stream>(context, kind, number));
    return kCudaSuccess;
  });
}

// Work that is queued still runs. The default stream cannot be destroyed.
CUresult stream_destroy(CUstream stream) {
  return guarded([&]() -> CUresult {
    const auto context = current_context();
    const auto found = state().streams.remove(stream);
    if (found == nullptr) return kCudaInvalidHandle;
    abandon_capture(*found);
    found->retire();
    return context->lost;
  });
}

CUresult stream_synchronize(CUstream stream) {
  return guarded([&]() -> CUresult {
    const auto on = find_stream(stream);
    refuse_capturing(*on);
    return synchronize(*on);
  });
}

CUresult stream_query(CUstream stream) {
  return guarded([&]() -> CUresult {
    const auto on = find_stream(stream);
    refuse_capturing(*on);
    for (const ItemPointer& tail : on->tails()) {
      if (const CUresult code = query(*on->context(), tail); code != kCudaSuccess) return code;
    }
    return on->take_refusal({}) ? kCudaOutOfMemory : kCudaSuccess;
  });
}

CUresult stream_wait_event(CUstream stream, CUevent event, unsigned flags) {
  return guarded([&]() -> CUresult {
    const auto on = find_stream(stream);
    const auto waited = find_event(event);
    if (flags != 0) return kCudaInvalidValue;
    if (const CUresult code = join_capture(*on, *waited); code != kCudaSuccess) return code;
    state().queue.link(*on->context(), *waited->context);
    on->wait_for(marker_of(*waited));
    return kCudaSuccess;
  });
}

CUresult event_create(CUevent* event, unsigned flags) {
  return guarded([&]() -> CUresult {
    const auto context = live_context();
    // Flags 1 (blocking sync) and 2 (disable timing) have no effect. Events for other processes are
    // refused.
    if (event == nullptr || (flags & ~3u) != 0) return kCudaInvalidValue;
    auto made = std::make_shared<Event>();
    made->context = context;
    made->flags = flags;
    *event = state().events.add(std::move(made));
    return kCudaSuccess;
  });
}

CUresult event_destroy(CUevent event) {
  return guarded([&]() -> CUresult {
    const auto context = current_context();
    if (state().events.remove(event) == nullptr) return kCudaInvalidHandle;
    return context->lost;
  });
}

CUresult event_record(CUevent event, CUstream stream) {
  return guarded([&]() -> CUresult {
    const auto on = find_stream(stream);
    const auto recorded = find_event(event);
    if (recorded->context != on->context()) return kCudaInvalidHandle;
    if (capture_record(*on, *recorded)) return kCudaSuccess;
    const ItemPointer marker =
        on->submit(make_work("cuEventRecord", [recorded](const OperationPointer&) {
          std::lock_guard lock(recorded->mutex);
          recorded->recorded = true;
          recorded->time = std::chrono::steady_clock::now();
        }));
    std::lock_guard lock(recorded->mutex);
    recorded->marker = marker;
    return kCudaSuccess;
  });
}

// The event comes after all work that was submitted to the context so far, on any stream. Captures
// become invalid, because their work has not been submitted yet.
CUresult ctx_record_event(CUcontext handle, CUevent event) {
  return guarded([&]() -> CUresult {
    const auto recorded = find_event(event);
    const auto context = state().contexts.find(handle);
    if (context == nullptr || recorded->context != context) return kCudaInvalidHandle;
    bool captured = false;
    for (const auto& stream : state().streams.all()) {
      const auto capture = stream->context() == context ? stream->capture() : nullptr;
      if (capture == nullptr) continue;
      std::lock_guard lock(capture->mutex);
      capture->invalid = captured = true;
    }
    if (captured) return kCudaCaptureUnsupported;
    auto marker = std::make_shared<Item>();
    marker->context = context;
    marker->run = [recorded](const OperationPointer&) {
      std::lock_guard lock(recorded->mutex);
      recorded->recorded = true;
      recorded->time = std::chrono::steady_clock::now();
    };
    Work work;
    work.operation.what = "cuCtxRecordEvent";
    work.operation.where = "device " + std::to_string(context->device->ordinal());
    work.operation.checked = context->device->options().checked != 0;
    work.operation.context = context;
    {
      std::lock_guard lock(context->mutex);
      std::vector<OperationPointer> before;
      for (const auto& [chain, operation] : context->latest) before.push_back(operation);
      marker->operation =
          state().detector.order.submit(std::move(work.operation), context->all_work, before);
      context->latest[context->all_work.get()] = marker->operation;
    }
    marker->after = state().queue.pending(*context);
    state().queue.add({&marker, 1});
    if (context->device->options().streams == 0) state().queue.finish(marker);
    std::lock_guard lock(recorded->mutex);
    recorded->marker = marker;
    recorded->capture.reset();
    return kCudaSuccess;
  });
}

// An event that was never recorded counts as done.
CUresult event_synchronize(CUevent event) {
  return guarded([&]() -> CUresult {
    const auto found = find_event(event);
    refuse_captured(*found);
    const ItemPointer marker = marker_of(*found);
    state().queue.finish(marker);
    observe(marker);
    if (found->context->lost != kCudaSuccess) return found->context->lost;
    return state().queue.take_refusal({&marker, 1}, nullptr) ? kCudaOutOfMemory : kCudaSuccess;
  });
}

CUresult event_query(CUevent event) {
  return guarded([&]() -> CUresult {
    const auto found = find_event(event);
    refuse_captured(*found);
    refuse_under_capture();
    return query(*found->context, marker_of(*found));
  });
}

// The time that the simulation took. It does not predict the time on a GPU.
CUresult event_elapsed_time(float* millis, CUevent start, CUevent end) {
  return guarded([&]() -> CUresult {
    const auto from = find_event(start);
    const auto to = find_event(end);
    if (millis == nullptr) return kCudaInvalidValue;
    for (Event* event : {from.get(), to.get()}) {
      const ItemPointer marker = marker_of(*event);
      if (!state().queue.done(marker)) return kCudaNotReady;
      observe(marker);
    }
    const auto elapsed = time_of(*to) - time_of(*from);
    *millis = std::chrono::duration<float, std::milli>(elapsed).count();
    return kCudaSuccess;
  });
}

// Like cuLaunchHostFunc. After a fault no callback runs, like all other work of the context.
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

// Attributes are hints (which part of the cache is kept, in which order waits wake up). A query
// returns the value that was set.
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

// All streams have the same priority.
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

// No stream belongs to a green context.
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

CUresult launch_host_func(CUstream stream, void (*function)(void*), void* data) {
  return guarded([&]() -> CUresult {
    NodeParameters node;
    node.type = kNodeHost;
    node.host = {function, data};
    find_stream(stream)->submit(work_of(std::move(node)));
    return kCudaSuccess;
  });
}

}  // namespace annulus::simulator::driver::entry
