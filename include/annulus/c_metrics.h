#ifndef ANNULUS_C_METRICS_H_
#define ANNULUS_C_METRICS_H_

// What a device has done, and what the process did when: annulus/metrics.h and annulus/trace.h in
// C, by the conventions of annulus/c.h.

#include "annulus/c.h"
#include "annulus/c_pattern.h"

#ifdef __cplusplus
extern "C" {
#endif

// One number for each line of annulus/metrics.def, which says what they count.
typedef struct annulus_metrics {
  size_t struct_size;
#define METRIC(name, kind, meaning) int64_t name;
#include "annulus/metrics.def"
} annulus_metrics;

#define ANNULUS_METRICS_INIT                                                                      \
  {                                                                                               \
    sizeof(annulus_metrics), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, \
        0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, \
        0, 0, 0, 0, 0, 0, 0, 0, 0                                                                 \
  }

// Does not wait.
ANNULUS_EXPORT annulus_status annulus_device_metrics(annulus_device* device, annulus_metrics* to);

// The numbers in the OpenMetrics text format 1.0.0, without "# EOF". `labels` goes between the
// braces as it is; null: no braces.
ANNULUS_EXPORT annulus_status annulus_metrics_text(const annulus_metrics* metrics,
                                                   const char* labels, annulus_text** text);

// How long the timed runs of a plan took on the device; annulus::RunTimes.
typedef struct annulus_run_times {
  size_t struct_size;
  int64_t runs;
  double total_micros;
  double least_micros;
  double most_micros;
  double last_micros;
} annulus_run_times;

#define ANNULUS_RUN_TIMES_INIT \
  { sizeof(annulus_run_times), 0, 0, 0, 0, 0 }

ANNULUS_EXPORT annulus_status annulus_plan_times(annulus_plan* plan, annulus_run_times* to);

// Records what the library does in this process; the newest max_spans spans are kept, from 1 to
// 2^24, or 65,536 for 0.
ANNULUS_EXPORT annulus_status annulus_trace_start(int64_t max_spans);
ANNULUS_EXPORT annulus_status annulus_trace_stop(void);

typedef struct annulus_trace_state {
  size_t struct_size;
  int64_t recording;  // 0 or 1
  int64_t spans;
  int64_t lost;
} annulus_trace_state;

#define ANNULUS_TRACE_STATE_INIT \
  { sizeof(annulus_trace_state), 0, 0, 0 }

ANNULUS_EXPORT annulus_status annulus_trace_read_state(annulus_trace_state* to);

// What was recorded, in the Trace Event Format: as a text, and as a file.
ANNULUS_EXPORT annulus_status annulus_trace_json(annulus_text** text);
ANNULUS_EXPORT annulus_status annulus_trace_write(const char* path);

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // ANNULUS_C_METRICS_H_
