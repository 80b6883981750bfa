#include "simulator/driver/objects/capture.h"

#include "simulator/driver/entries/entries.h"
#include "simulator/driver/objects/graph.h"

namespace annulus::simulator::driver {
namespace {

// Ends a capture for all streams that took part in it. Requires: capture.mutex is not held.
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
  std::vector<NodePointer> behind;
  {
    std::lock_guard lock(event.mutex);
    recorded_in = event.capture.lock();
    recorded_on = event.captured_from;
    behind = event.captured;
  }
  const auto capture = stream.capture();
  if (recorded_in == nullptr) {
    // A stream under capture cannot wait for work outside of the capture, because a replay would
    // not have that work.
    return capture == nullptr ? abi::kCudaSuccess : abi::kCudaCaptureIsolation;
  }
  if (capture != nullptr && capture != recorded_in) return abi::kCudaCaptureMerge;
  std::lock_guard lock(recorded_in->mutex);
  // The stream of the event counts as joined until it records more work (Stream::record). The
  // waiting stream takes part in the capture from now on. Unless it is the origin, it has to be
  // joined as well.
  const auto waited_for = recorded_in->joined.find(recorded_on);
  if (waited_for != recorded_in->joined.end()) waited_for->second = true;
  std::vector<NodePointer>& tails = recorded_in->tails[stream.handle()];
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
  if (stream.handle() != capture->origin) return;
  end(capture);
  if (!capture->to_given_graph) destroy_graph(*capture->graph);
}

abi::CUresult begin_capture(abi::CUstream stream, std::shared_ptr<Graph> graph,
                            std::vector<NodePointer> behind, int mode) {
  const auto on = find_stream(stream);
  if (mode < abi::kCaptureGlobal || mode > abi::kCaptureRelaxed) return abi::kCudaInvalidValue;
  // The default stream cannot be captured.
  if (state().streams.find(stream) == nullptr) return abi::kCudaCaptureUnsupported;
  if (on->capture() != nullptr) return abi::kCudaIllegalState;
  auto capture = std::make_shared<Capture>();
  capture->origin = on->handle();
  capture->mode = mode;
  capture->id = ++state().last_capture;
  capture->to_given_graph = graph != nullptr;
  capture->graph = graph != nullptr ? std::move(graph) : make_graph();
  capture->tails[on->handle()] = std::move(behind);
  on->set_capture(capture);
  if (mode == abi::kCaptureGlobal) ++state().global_captures;
  return abi::kCudaSuccess;
}

namespace entry {

CUresult stream_begin_capture(CUstream stream, int mode) {
  return guarded([&] { return begin_capture(stream, nullptr, {}, mode); });
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
    const bool whole = !capture->invalid && all_joined(*capture);
    if (!whole && !capture->to_given_graph) destroy_graph(*capture->graph);
    if (!whole) return capture->invalid ? kCudaCaptureInvalidated : kCudaCaptureUnjoined;
    *graph = capture->graph->handle();
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

}  // namespace entry
}  // namespace annulus::simulator::driver
