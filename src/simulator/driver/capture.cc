#include "simulator/driver/capture.h"

#include "simulator/driver/entries.h"

namespace annulus::simulator::driver {
namespace {

// Ends a capture for all streams that took part. Requires: capture.mutex is not held.
void end(const std::shared_ptr<Capture>& capture) {
  if (capture->mode == abi::kCaptureGlobal) --state().global_captures;
  for (const auto& [handle, joined] : capture->joined) {
    if (const auto stream = state().streams.find(handle)) stream->set_capture(nullptr);
  }
}

bool all_joined(const Capture& capture) {
  for (const auto& [stream, joined] : capture.joined) {
    if (!joined) return false;
  }
  return true;
}

}  // namespace

void refuse_capturing(Stream& stream) {
  const auto capture = stream.capture();
  if (capture == nullptr) return;
  std::lock_guard lock(capture->mutex);
  capture->invalid = true;
  throw Refusal{abi::kCudaCaptureUnsupported};
}

bool capture_record(Stream& stream, Event& event) {
  const auto capture = stream.capture();
  std::lock_guard lock(event.mutex);
  event.capture = capture;
  event.captured_from = stream.handle();
  event.captured.clear();
  if (capture == nullptr) return false;
  std::lock_guard capture_lock(capture->mutex);
  event.captured = capture->tails[stream.handle()];
  return true;
}

abi::CUresult join_capture(Stream& stream, Event& event) {
  std::shared_ptr<Capture> recorded_in;
  abi::CUstream recorded_on = nullptr;
  std::vector<std::size_t> behind;
  {
    std::lock_guard lock(event.mutex);
    recorded_in = event.capture.lock();
    recorded_on = event.captured_from;
    behind = event.captured;
  }
  const auto capture = stream.capture();
  if (recorded_in == nullptr) {
    // A stream under capture cannot wait for work outside, which the replay would not have.
    return capture == nullptr ? abi::kCudaSuccess : abi::kCudaCaptureIsolation;
  }
  if (capture != nullptr && capture != recorded_in) return abi::kCudaCaptureMerge;
  std::lock_guard lock(recorded_in->mutex);
  // The stream of the event is joined until it records more work (Stream::record). The waiting
  // stream takes part in the capture from now on, and has to be joined itself unless it is the
  // origin.
  const auto waited_for = recorded_in->joined.find(recorded_on);
  if (waited_for != recorded_in->joined.end()) waited_for->second = true;
  std::vector<std::size_t>& tails = recorded_in->tails[stream.handle()];
  tails.insert(tails.end(), behind.begin(), behind.end());
  if (stream.handle() != recorded_in->origin) {
    recorded_in->joined[stream.handle()] = false;
    stream.set_capture(recorded_in);
  }
  return abi::kCudaSuccess;
}

void abandon_capture(Stream& stream) {
  const auto capture = stream.capture();
  if (capture == nullptr) return;
  {
    std::lock_guard lock(capture->mutex);
    capture->invalid = true;
  }
  if (stream.handle() == capture->origin) end(capture);
}

namespace entry {

CUresult stream_begin_capture(CUstream stream, int mode) {
  return guarded([&]() -> CUresult {
    const auto on = find_stream(stream);
    if (mode < kCaptureGlobal || mode > kCaptureRelaxed) return kCudaInvalidValue;
    // The default stream cannot be captured.
    if (state().streams.find(stream) == nullptr) return kCudaCaptureUnsupported;
    if (on->capture() != nullptr) return kCudaIllegalState;
    auto capture = std::make_shared<Capture>();
    capture->origin = on->handle();
    capture->mode = mode;
    on->set_capture(capture);
    if (mode == kCaptureGlobal) ++state().global_captures;
    return kCudaSuccess;
  });
}

CUresult stream_end_capture(CUstream stream, CUgraph* graph) {
  return guarded([&]() -> CUresult {
    const auto on = find_stream(stream);
    if (graph == nullptr) return kCudaInvalidValue;
    *graph = nullptr;
    const auto capture = on->capture();
    if (capture == nullptr) return kCudaIllegalState;
    if (capture->origin != on->handle()) return kCudaCaptureUnmatched;
    on->set_capture(nullptr);
    end(capture);
    std::lock_guard lock(capture->mutex);
    if (capture->invalid) return kCudaCaptureInvalidated;
    if (!all_joined(*capture)) return kCudaCaptureUnjoined;
    auto made = std::make_shared<Graph>();
    made->nodes = std::move(capture->nodes);
    *graph = state().graphs.add(std::move(made));
    return kCudaSuccess;
  });
}

CUresult thread_exchange_capture_mode(int* mode) {
  return guarded([&]() -> CUresult {
    if (mode == nullptr || *mode < kCaptureGlobal || *mode > kCaptureRelaxed) {
      return kCudaInvalidValue;
    }
    std::swap(*mode, capture_mode());
    return kCudaSuccess;
  });
}

CUresult graph_instantiate(CUgraphExec* exec, CUgraph graph, unsigned long long flags) {
  return guarded([&]() -> CUresult {
    const auto context = live_context();
    const auto found = state().graphs.find(graph);
    if (exec == nullptr || found == nullptr || flags != 0) return kCudaInvalidValue;
    auto made = std::make_shared<GraphExec>();
    made->context = context;
    made->nodes = found->nodes;
    *exec = state().graph_execs.add(std::move(made));
    return kCudaSuccess;
  });
}

CUresult graph_launch(CUgraphExec exec, CUstream stream) {
  return guarded([&]() -> CUresult {
    const auto on = find_stream(stream);
    const auto found = state().graph_execs.find(exec);
    if (found == nullptr) return kCudaInvalidValue;
    on->submit(*found);
    return kCudaSuccess;
  });
}

CUresult graph_exec_destroy(CUgraphExec exec) {
  return guarded([&]() -> CUresult {
    return state().graph_execs.remove(exec) == nullptr ? kCudaInvalidValue : kCudaSuccess;
  });
}

CUresult graph_destroy(CUgraph graph) {
  return guarded([&]() -> CUresult {
    return state().graphs.remove(graph) == nullptr ? kCudaInvalidValue : kCudaSuccess;
  });
}

}  // namespace entry
}  // namespace annulus::simulator::driver
