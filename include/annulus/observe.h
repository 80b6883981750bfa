#ifndef ANNULUS_OBSERVE_H_
#define ANNULUS_OBSERVE_H_

// What a device has done since it was opened, as numbers for an engine's own monitoring:
//
//   Metrics now = device.metrics();                         // annulus/device.h
//   response.body = metrics_text(now, "device=\"cuda:0\"");   // for Prometheus and its like
//
// The numbers and their meanings are the lines of annulus/metrics.def.

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
  kTotal = 1,    // only grows
  kLongest = 2,  // the longest so far
  kNow = 3,      // goes up and down
};

// A line of annulus/metrics.def with its number. Texts are literals.
struct Metric {
  std::string_view name;
  MetricKind kind = MetricKind::kTotal;
  std::string_view meaning;
  std::int64_t value = 0;
};
// In the order of annulus/metrics.def.
ANNULUS_EXPORT std::vector<Metric> list_metrics(const Metrics& metrics);

// The numbers in the OpenMetrics text format 1.0.0, without its last line "# EOF", so that a
// program can add its own: "annulus_plans_total{device=\"cuda:0\"} 3". Microseconds become seconds.
// `labels` goes between the braces as it is; empty: no braces.
ANNULUS_EXPORT std::string metrics_text(const Metrics& metrics, std::string_view labels = {});

// How long the timed runs of a plan took on the device, in microseconds, from an event before their
// first launch to one behind their last (DeviceOptions::time_every_nth_run). On a simulated device
// it is the time that the simulator took, which says nothing about a GPU. All zero before the
// first.
struct RunTimes {
  std::int64_t runs = 0;
  double total_micros = 0;
  double least_micros = 0;
  double most_micros = 0;
  double last_micros = 0;
};

// Records what the library does in this process, on all threads and for all devices: plans, their
// steps, compilations, uploads, runs, rings, searches. Runs that are timed on the device
// (DeviceOptions::time_every_nth_run) are recorded as well, on a track of their device.
//
//   start_trace();
//   ...
//   write_trace("trace.json");    // open it in ui.perfetto.dev or chrome://tracing
//
// While it records, each span takes a lock for a moment, runs included; otherwise it costs nothing.
// Where a profiler sets NVTX_INJECTION64_PATH (Nsight Systems, Nsight Compute with --nvtx), the
// same spans go to it as ranges of the NVTX domain "annulus", from the first Device::open on,
// whether they are recorded here or not. Any thread may call these functions. A child of fork
// records nothing, and start_trace(), trace_json() and write_trace() throw Error{kDevice} there.

struct TraceOptions {
  // How many spans are kept: the newest. Each takes about 150 bytes, at once. From 1 to 2^24.
  std::int64_t max_spans = 65'536;
};

// Begins anew: what was recorded before is dropped. Throws Error{kInvalidArgument}.
ANNULUS_EXPORT void start_trace(const TraceOptions& options = {});
// What was recorded stays until the next start_trace().
ANNULUS_EXPORT void stop_trace();

struct TraceState {
  bool recording = false;
  std::int64_t spans = 0;  // that are kept
  std::int64_t lost = 0;   // that were recorded and made room for newer ones
};
ANNULUS_EXPORT TraceState trace_state();

// What was recorded, in the Trace Event Format (Google, "Trace Event Format"): complete events in
// microseconds of std::chrono::steady_clock, so that other traces of the process fit beside them,
// in the order in which they begin. A Device has a clock of its own; its runs are shifted by as
// little as lets none begin before the host queued it. Runs that overlap, on two streams, are on
// tracks of their own: "cuda:0", "cuda:0 (2)". Device::metrics(), Plan::times() and the end of the
// device with its plans collect the last timed runs.
ANNULUS_EXPORT std::string trace_json();
// Writes trace_json() to a file, which appears whole or not at all. Throws Error{kFile}.
ANNULUS_EXPORT void write_trace(const std::string& path);

}  // namespace annulus::inline v0

#endif  // ANNULUS_OBSERVE_H_
