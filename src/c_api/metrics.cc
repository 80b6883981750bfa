// The C interface of metrics and traces. Each function converts its arguments and calls
// annulus/observe.h.
#include "annulus/c.h"
#include "annulus/c_tools.h"

#include "annulus/observe.h"
#include "c_api/functions.h"
#include "c_api/objects.h"

namespace annulus::c_api {
namespace {

constexpr StructName kMetrics = {"annulus_metrics", "ANNULUS_METRICS_INIT"};
constexpr StructName kRunTimes = {"annulus_run_times", "ANNULUS_RUN_TIMES_INIT"};
constexpr StructName kTraceState = {"annulus_trace_state", "ANNULUS_TRACE_STATE_INIT"};

}  // namespace
}  // namespace annulus::c_api

extern "C" {

annulus_status annulus_device_metrics(annulus_device* device, annulus_metrics* to) {
  return guarded([&] {
    const Metrics now = DevicePin(devices(), number(device))->device.metrics();
    annulus_metrics c = ANNULUS_METRICS_INIT;
#define METRIC(name, kind, meaning) c.name = now.name;
#include "annulus/metrics.def"
    write_struct(kMetrics, to, c);
  });
}

annulus_status annulus_metrics_text(const annulus_metrics* metrics, const char* labels,
                                    annulus_text** text) {
  return guarded([&] {
    check_pointer("metrics", metrics);
    check_pointer("text (where the handle goes)", text);
    const annulus_metrics c = read_struct(kMetrics, metrics, annulus_metrics(ANNULUS_METRICS_INIT));
    Metrics given;
#define METRIC(name, kind, meaning) given.name = c.name;
#include "annulus/metrics.def"
    give_text(text, metrics_text(given, labels == nullptr ? "" : labels));
  });
}

annulus_status annulus_plan_times(annulus_plan* plan, annulus_run_times* to) {
  return guarded([&] {
    const RunTimes times = PlanPin(plans(), number(plan))->plan.times();
    annulus_run_times c = ANNULUS_RUN_TIMES_INIT;
    c.runs = times.runs;
    c.total_micros = times.total_micros;
    c.min_micros = times.min_micros;
    c.max_micros = times.max_micros;
    c.last_micros = times.last_micros;
    write_struct(kRunTimes, to, c);
  });
}

annulus_status annulus_trace_start(int64_t max_spans) {
  return guarded([&] { start_trace(max_spans == 0 ? TraceOptions{} : TraceOptions{max_spans}); });
}

annulus_status annulus_trace_stop(void) {
  return guarded([] { stop_trace(); });
}

annulus_status annulus_trace_read_state(annulus_trace_state* to) {
  return guarded([&] {
    const TraceState now = trace_state();
    annulus_trace_state c = ANNULUS_TRACE_STATE_INIT;
    c.recording = now.recording ? 1 : 0;
    c.spans = now.spans;
    c.lost = now.lost;
    write_struct(kTraceState, to, c);
  });
}

annulus_status annulus_trace_json(annulus_text** text) {
  return guarded([&] {
    check_pointer("text (where the handle goes)", text);
    give_text(text, trace_json());
  });
}

annulus_status annulus_trace_write(const char* path) {
  return guarded([&] {
    check_pointer("path", path);
    write_trace(path);
  });
}

}  // extern "C"
