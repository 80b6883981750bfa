// Queries: head dims, errors in a problem, predictions, counters, and the options of the simulator.

#include <annulus/c.h>
#include <stdlib.h>
#include <string.h>

#include <annulus/c_tools.h>
#include "c_abi/check.h"
#include "c_abi/sample.h"

static void problems(const sample* made) {
  annulus_problem problem = made->problem;
  annulus_operands operands = made->operands;
  int64_t qk = 0;
  int64_t v = 0;
  int64_t before = 0;
  size_t i = 0;
  CHECK(annulus_dims_count() >= 7);
  for (i = 0; i < annulus_dims_count(); ++i) {
    CHECK_OK(annulus_dims_get(i, &qk, &v));
    CHECK(qk >= before && v <= qk && v >= 32);
    before = qk;
    problem.dim_qk = qk;
    problem.dim_v = v;
    CHECK_OK(annulus_problem_validate(&problem, NULL));
  }
  CHECK(qk == 256);
  CHECK_FAILS(annulus_dims_get(i, &qk, &v), ANNULUS_INVALID_ARGUMENT, "head dims ");
  CHECK_FAILS(annulus_dims_get(0, &qk, NULL), ANNULUS_INVALID_ARGUMENT, "dim_v");
  CHECK_OK(annulus_problem_validate(&made->problem, &operands));
  operands.q = NULL;
  CHECK_FAILS(annulus_problem_validate(&made->problem, &operands), ANNULUS_INVALID_ARGUMENT,
              "Q is null");
  problem.dim_v = 33;
  CHECK_FAILS(annulus_problem_validate(&problem, NULL), ANNULUS_UNSUPPORTED, "256/33");
  CHECK_FAILS(annulus_problem_validate(NULL, NULL), ANNULUS_INVALID_ARGUMENT,
              "annulus_problem is null");
}

static void predictions(const sample* made) {
  annulus_prediction prediction = ANNULUS_PREDICTION_INIT;
  annulus_plan* plan = NULL;
  size_t i = 0;
  CHECK_OK(annulus_plan_create(made->device, &made->problem, NULL, &plan));
  CHECK_OK(annulus_plan_predict(plan, &prediction));
  CHECK(prediction.micros > 0 && strlen(prediction.limit) > 3);
  CHECK(prediction.pipe_count == 6);
  CHECK(strcmp(prediction.pipes[0].name, "tensor cores") == 0);
  for (i = 0; i < prediction.pipe_count; ++i) {
    CHECK(prediction.pipes[i].busy >= 0 && prediction.pipes[i].busy <= 1);
  }
  CHECK_FAILS(annulus_plan_predict(plan, NULL), ANNULUS_INVALID_ARGUMENT,
              "annulus_prediction is null");
  CHECK_OK(annulus_plan_destroy(plan));
  CHECK_FAILS(annulus_plan_predict(plan, &prediction), ANNULUS_INVALID_ARGUMENT, "the plan was");
}

static uint64_t launches(annulus_device* device, int32_t clear) {
  annulus_counter counters[64];
  size_t count = 0;
  size_t i = 0;
  CHECK_OK(annulus_device_get_counters(device, clear, counters, 64, &count));
  CHECK(count > 10 && count <= 64);
  for (i = 0; i < count; ++i) {
    if (strcmp(counters[i].name, "launches") == 0) return counters[i].value;
  }
  return (uint64_t)-1;
}

static void counters(const sample* made) {
  annulus_counter first[2];
  annulus_plan* plan = NULL;
  size_t count = 0;
  launches(made->device, 1);
  CHECK_OK(annulus_plan_create(made->device, &made->problem, NULL, &plan));
  CHECK_OK(annulus_plan_run(plan, NULL, &made->operands, NULL));
  CHECK_OK(annulus_plan_run(plan, NULL, &made->operands, NULL));
  CHECK_OK(annulus_device_synchronize(made->device));
  CHECK(launches(made->device, 0) == 2);
  CHECK(launches(made->device, 1) == 2);
  CHECK(launches(made->device, 0) == 0);
  memset(first, 0, sizeof first);
  CHECK_OK(annulus_device_get_counters(made->device, 0, first, 1, &count));
  CHECK(count > 1 && first[0].name != NULL && first[1].name == NULL);
  CHECK_OK(annulus_device_get_counters(made->device, 0, NULL, 0, &count));
  CHECK_FAILS(annulus_device_get_counters(made->device, 0, NULL, 1, &count),
              ANNULUS_INVALID_ARGUMENT, "counters is null");
  CHECK_FAILS(annulus_device_get_counters(made->device, 2, first, 1, &count),
              ANNULUS_INVALID_ARGUMENT, "clear is 2");
  CHECK_FAILS(annulus_device_get_counters(made->device, 0, first, 1, NULL),
              ANNULUS_INVALID_ARGUMENT, "count");
  CHECK_OK(annulus_plan_destroy(plan));
}

// Plans of one irregular pattern share a list, unless the device keeps no lists.
static void lists(const sample* made, int keeps) {
  annulus_cache_counters host = ANNULUS_CACHE_COUNTERS_INIT;
  annulus_cache_counters device = ANNULUS_CACHE_COUNTERS_INIT;
  annulus_problem problem = made->problem;
  annulus_plan* plan = NULL;
  int i = 0;
  problem.pattern = "causal & (random(1, 3, 8) | window(3, 0))";
  for (i = 0; i < 2; ++i) {
    CHECK_OK(annulus_plan_create(made->device, &problem, NULL, &plan));
    CHECK_OK(annulus_plan_destroy(plan));
  }
  CHECK_OK(annulus_device_get_list_counters(made->device, &host, &device));
  CHECK(host.entries == keeps && device.entries == keeps);
  CHECK((device.hits > 0) == keeps && (host.bytes > 0) == keeps);
  CHECK_OK(annulus_device_get_list_counters(made->device, NULL, NULL));
  host.struct_size = 3;
  CHECK_FAILS(annulus_device_get_list_counters(made->device, &host, NULL), ANNULUS_INVALID_ARGUMENT,
              "struct_size of annulus_cache_counters is 3");
}

static void simulation(const sample* made) {
  annulus_simulation how = ANNULUS_SIMULATION_INIT;
  annulus_plan* plan = NULL;
  how.checked = 0;
  how.threads = 1;
  how.seed = 7;
  CHECK_OK(annulus_device_set_simulation(made->device, &how));
  CHECK_OK(annulus_plan_create(made->device, &made->problem, NULL, &plan));
  sample_clear(made);
  CHECK_OK(annulus_plan_run(plan, NULL, &made->operands, NULL));
  CHECK(sample_error(made, sample_all, NULL) < 1e-2);
  CHECK_OK(annulus_plan_destroy(plan));
  CHECK_OK(annulus_device_set_simulation(made->device, NULL));
  how.checked = 3;
  CHECK_FAILS(annulus_device_set_simulation(made->device, &how), ANNULUS_INVALID_ARGUMENT,
              "simulation_checked is 3");
  how.checked = 1;
  how.threads = -5;
  CHECK_FAILS(annulus_device_set_simulation(made->device, &how), ANNULUS_INVALID_ARGUMENT,
              "simulation_threads is -5");
  how.struct_size = 12;
  CHECK_FAILS(annulus_device_set_simulation(made->device, &how), ANNULUS_INVALID_ARGUMENT,
              "struct_size of annulus_simulation is 12");
  CHECK_FAILS(annulus_device_set_simulation(NULL, NULL), ANNULUS_INVALID_ARGUMENT,
              "the device is null");
}

void test_inspect(void) {
  annulus_device_options options = sample_options();
  annulus_cache_limits none = ANNULUS_CACHE_LIMITS_INIT;
  annulus_device* device = sample_open();
  sample* made = malloc(sizeof *made);
  annulus_device_info info = ANNULUS_DEVICE_INFO_INIT;
  sample_make(made, device);
  problems(made);
  predictions(made);
  CHECK_OK(annulus_device_get_info(device, &info));
  if (info.simulated) counters(made);
  lists(made, 1);
  simulation(made);
  CHECK_OK(annulus_device_close(device));
  none.entries = 0;
  options.host_lists = options.device_lists = &none;
  CHECK_OK(annulus_device_open(&options, &device));
  sample_make(made, device);
  lists(made, 0);
  CHECK_OK(annulus_device_close(device));
  none.entries = -1;
  CHECK_FAILS(annulus_device_open(&options, &device), ANNULUS_INVALID_ARGUMENT, "-1 entries");
  free(made);
}
