// The metrics of a device, the times of runs, and a trace of the process.

#include <annulus/c.h>
#include <stdio.h>
#include <string.h>

#include <annulus/c_tools.h>
#include "c_abi/check.h"
#include "c_abi/sample.h"

static int has(annulus_text* text, const char* part) {
  const char* characters = NULL;
  size_t bytes = 0;
  CHECK_OK(annulus_text_get(text, &characters, &bytes));
  return strstr(characters, part) != NULL;
}

void test_metrics(void) {
  annulus_device_options options = sample_options();
  annulus_device* device = NULL;
  annulus_plan* plan = NULL;
  annulus_text* text = NULL;
  annulus_metrics now = ANNULUS_METRICS_INIT;
  annulus_run_times times = ANNULUS_RUN_TIMES_INIT;
  annulus_trace_state state = ANNULUS_TRACE_STATE_INIT;
  sample made;
  options.time_every_nth_run = 1;
  CHECK_OK(annulus_trace_start(0));
  CHECK_OK(annulus_device_open(&options, &device));
  CHECK_OK(annulus_device_metrics(device, &now));
  CHECK(now.plans == 0 && now.runs == 0 && now.memory_held_bytes == 0);
  sample_make(&made, device);
  CHECK_OK(annulus_plan_create(device, &made.problem, NULL, &plan));
  CHECK_OK(annulus_plan_times(plan, &times));
  CHECK(times.runs == 0);
  CHECK_OK(annulus_plan_run(plan, NULL, &made.operands, NULL));
  CHECK_OK(annulus_device_synchronize(device));
  CHECK_OK(annulus_plan_times(plan, &times));
  CHECK(times.runs == 1);
  CHECK(times.min_micros > 0 && times.min_micros == times.max_micros);
  CHECK(times.last_micros == times.total_micros);
  CHECK_OK(annulus_device_metrics(device, &now));
  CHECK(now.struct_size == sizeof now);
  CHECK(now.plans == 1 && now.runs == 1 && now.timed_runs == 1);
  CHECK(now.compiles + now.kernels_from_disk == 1);
  CHECK(now.memory_caller_bytes > 0);

  CHECK_OK(annulus_metrics_text(&now, "device=\"0\"", &text));
  CHECK(has(text, "annulus_runs_total{device=\"0\"} 1\n"));
  CHECK_OK(annulus_text_destroy(text));
  CHECK_OK(annulus_metrics_text(&now, NULL, &text));
  CHECK(has(text, "annulus_runs_total 1\n"));
  CHECK_OK(annulus_text_destroy(text));

  CHECK_OK(annulus_trace_stop());
  CHECK_OK(annulus_trace_read_state(&state));
  CHECK(!state.recording && state.spans >= 3 && state.lost == 0);
  CHECK_OK(annulus_trace_json(&text));
  CHECK(has(text, "\"name\":\"plan\""));
  CHECK(has(text, "\"cat\":\"device\",\"name\":\"run\""));
  CHECK_OK(annulus_text_destroy(text));
  CHECK_FAILS(annulus_trace_write("/no/such/folder/trace.json"), ANNULUS_FILE, "/no/such/folder");

  CHECK_FAILS(annulus_device_metrics(NULL, &now), ANNULUS_INVALID_ARGUMENT, "device");
  CHECK_FAILS(annulus_device_metrics(device, NULL), ANNULUS_INVALID_ARGUMENT, "annulus_metrics");
  CHECK_FAILS(annulus_metrics_text(NULL, NULL, &text), ANNULUS_INVALID_ARGUMENT, "metrics");
  CHECK_FAILS(annulus_metrics_text(&now, NULL, NULL), ANNULUS_INVALID_ARGUMENT, "text");
  CHECK_FAILS(annulus_plan_times(NULL, &times), ANNULUS_INVALID_ARGUMENT, "plan");
  CHECK_FAILS(annulus_plan_times(plan, NULL), ANNULUS_INVALID_ARGUMENT, "annulus_run_times");
  CHECK_FAILS(annulus_trace_start(-1), ANNULUS_INVALID_ARGUMENT, "max_spans is -1");
  CHECK_FAILS(annulus_trace_read_state(NULL), ANNULUS_INVALID_ARGUMENT, "annulus_trace_state");
  CHECK_FAILS(annulus_trace_json(NULL), ANNULUS_INVALID_ARGUMENT, "text");
  CHECK_FAILS(annulus_trace_write(NULL), ANNULUS_INVALID_ARGUMENT, "path");
  // A caller whose struct has fewer metrics gets only those.
  now.struct_size = sizeof(size_t) + sizeof(int64_t);
  now.runs = 77;
  CHECK_OK(annulus_device_metrics(device, &now));
  CHECK(now.plans == 1 && now.runs == 77);
  CHECK_OK(annulus_plan_destroy(plan));
  CHECK_OK(annulus_device_close(device));
}
