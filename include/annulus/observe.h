#ifndef ANNULUS_OBSERVE_H_
#define ANNULUS_OBSERVE_H_

// Metrics of a device, times of runs, and traces of the process, for an engine's own monitoring:
//
//   Metrics now = device.metrics();                         // annulus/device.h
//   response.body = metrics_text(now, "device=\"cuda:0\"");   // for Prometheus and similar systems
//   start_trace();
//   ...
//   write_trace("trace.json");    // open it in ui.perfetto.dev or chrome://tracing

// The counters of a device since it was opened. annulus/metrics.def has their meanings.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "annulus/types.h"
#include "annulus/version.h"

namespace annulus::inline v0 {

struct Metrics {
#define METRIC(name, kind, meaning) std::int64_t name = 0;
#include "annulus/metrics.def"
};

enum class MetricKind : int {
  kTotal = 1,    // never falls
  kLongest = 2,  // the longest so far
  kNow = 3,      // rises and falls
};

// A line of annulus/metrics.def with its value. The texts are literals.
struct Metric {
  std::string_view name;
  MetricKind kind = MetricKind::kTotal;
  std::string_view meaning;
  std::int64_t value = 0;
};
// All metrics in the order of annulus/metrics.def.
ANNULUS_EXPORT std::vector<Metric> list_metrics(const Metrics& metrics);

// The metrics in the OpenMetrics text format 1.0.0, for example
// "annulus_plans_total{device=\"cuda:0\"} 3". The last line "# EOF" is missing, so that a program
// can add its own metrics. Microseconds become seconds. `labels` is copied between the braces
// unchanged; empty: no braces.
ANNULUS_EXPORT std::string metrics_text(const Metrics& metrics, std::string_view labels = {});

// The times of the timed runs of a plan (DeviceOptions::time_every_nth_run) in microseconds, each
// from an event before its first launch to an event after its last. On a simulated device they are
// times of the simulator, not of a GPU. All zero before the first timed run.
struct RunTimes {
  std::int64_t runs = 0;
  double total_micros = 0;
  double min_micros = 0;
  double max_micros = 0;
  double last_micros = 0;
};

// ---- Traces
//
// A trace records spans of the library in this process, on all threads and for all devices: plans,
// their steps, compilations, uploads, runs, rings, searches. It also has the runs that are timed on
// the device (DeviceOptions::time_every_nth_run), on a track of their device. While recording, each
// span takes a lock for a moment; otherwise traces cost nothing.
//
// If a profiler sets NVTX_INJECTION64_PATH (Nsight Systems, Nsight Compute with --nvtx), it
// receives the same spans as ranges of the NVTX domain "annulus" from the first Device::open on,
// even if no trace is recorded. Any thread may call these functions. A child of fork records
// nothing, and start_trace(), trace_json() and write_trace() throw Error{kDevice} there.
struct TraceOptions {
  // The number of newest spans that are kept, from 1 to 2^24. Each takes about 150 bytes, at once.
  std::int64_t max_spans = 65'536;
};

// Starts recording and drops earlier spans. Throws Error{kInvalidArgument}.
ANNULUS_EXPORT void start_trace(const TraceOptions& options = {});
// Stops recording. The spans stay until the next start_trace().
ANNULUS_EXPORT void stop_trace();

struct TraceState {
  bool recording = false;
  std::int64_t spans = 0;  // spans that are kept
  std::int64_t lost = 0;   // spans that were dropped for newer ones
};
ANNULUS_EXPORT TraceState trace_state();

// The spans in the Trace Event Format (Google, "Trace Event Format"): complete events in
// microseconds of std::chrono::steady_clock, so that other traces of the process can be added,
// ordered by their beginning. A device has its own clock: its runs are shifted by the least time
// with which none begins before the host queued it. Overlapping runs of two streams have separate
// tracks: "cuda:0", "cuda:0 (2)". Device::metrics(), Plan::times() and the destruction of the
// device and its plans collect the last timed runs.
ANNULUS_EXPORT std::string trace_json();
// Writes trace_json() to a file, completely or not at all. Throws Error{kFile}.
ANNULUS_EXPORT void write_trace(const std::string& path);

}  // namespace annulus::inline v0

#endif  // ANNULUS_OBSERVE_H_
