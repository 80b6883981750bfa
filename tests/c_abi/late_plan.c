// Plans that do not wait for their kernels.

#include <string.h>

#include "c_abi/check.h"
#include "c_abi/sample.h"

typedef struct heard {
  int calls;
  int32_t state;
  char problem[256];
} heard;

static void hear(void* user, int32_t state, const char* problem) {
  heard* to = user;
  ++to->calls;
  to->state = state;
  strncpy(to->problem, problem, sizeof to->problem - 1);
}

static int window(int q, int k) { return k <= q && q - k <= 9; }

static void swapped(sample* made, int32_t swap, int32_t ended) {
  annulus_problem problem = made->problem;
  annulus_plan_options options = ANNULUS_PLAN_OPTIONS_INIT;
  annulus_plan_info first = ANNULUS_PLAN_INFO_INIT;
  annulus_plan_info last = ANNULUS_PLAN_INFO_INIT;
  annulus_plan* plan = NULL;
  void* workspace = NULL;
  size_t bytes = 0;
  int32_t state = -1;
  heard told = {0, -1, ""};
  problem.pattern = "causal & window(9,0)";
  options.no_wait = 1;
  options.swap = swap;
  options.on_ready = hear;
  options.on_ready_user = &told;
  CHECK_OK(annulus_plan_create(made->device, &problem, &options, &plan));
  CHECK_OK(annulus_plan_get_info(plan, &first));
  CHECK_OK(annulus_plan_state(plan, &state));
  CHECK_OK(annulus_plan_workspace_bytes(plan, &bytes));
  CHECK_OK(annulus_device_allocate(made->device, bytes, &workspace));
  CHECK_OK(annulus_plan_run(plan, NULL, &made->operands, workspace));
  CHECK(sample_error(made, window, NULL) < 1e-2);
  CHECK_OK(annulus_plan_wait(plan, -1, &state));
  CHECK(state == ended);
  if (state == ANNULUS_PLAN_COMPILED) {
    CHECK_OK(annulus_plan_swap(plan));
    CHECK_OK(annulus_plan_state(plan, &state));
    CHECK(state == ANNULUS_PLAN_READY);
  }
  CHECK_OK(annulus_plan_get_info(plan, &last));
  CHECK(last.general == (ended == ANNULUS_PLAN_GENERAL));
  CHECK(strlen(first.decisions) > 0 && strlen(last.decisions) > 0);
  sample_clear(made);
  CHECK_OK(annulus_plan_run(plan, NULL, &made->operands, workspace));
  CHECK(sample_error(made, window, NULL) < 1e-2);
  CHECK_OK(annulus_plan_destroy(plan));
  CHECK_OK(annulus_device_release(made->device, workspace));
  CHECK(told.calls <= 1);
  if (told.calls == 1) CHECK(told.state == ended && strcmp(told.problem, "") == 0);
}

static void refusals(sample* made) {
  annulus_problem problem = made->problem;
  annulus_plan_options options = ANNULUS_PLAN_OPTIONS_INIT;
  annulus_plan_info info = ANNULUS_PLAN_INFO_INIT;
  annulus_plan* plan = NULL;
  int32_t state = -1;
  options.no_wait = 2;
  CHECK_FAILS(annulus_plan_create(made->device, &problem, &options, &plan),
              ANNULUS_INVALID_ARGUMENT, "no_wait");
  options.no_wait = 1;
  options.swap = 3;
  CHECK_FAILS(annulus_plan_create(made->device, &problem, &options, &plan),
              ANNULUS_INVALID_ARGUMENT, "swap is 3");
  options.swap = ANNULUS_SWAP_NEVER;
  problem.score = "score_mod(score * 3)";
  CHECK_FAILS(annulus_plan_create(made->device, &problem, &options, &plan), ANNULUS_UNSUPPORTED,
              "no general kernel");
  options.swap = ANNULUS_SWAP_WHEN_READY;
  CHECK_OK(annulus_plan_create(made->device, &problem, &options, &plan));
  CHECK_OK(annulus_plan_get_info(plan, &info));
  CHECK(strstr(info.waited, "no general kernel") != NULL);
  CHECK_OK(annulus_plan_wait(plan, 0, &state));
  CHECK(state == ANNULUS_PLAN_READY);
  CHECK_FAILS(annulus_plan_state(plan, NULL), ANNULUS_INVALID_ARGUMENT, "state");
  CHECK_FAILS(annulus_plan_wait(plan, 0.0 / 0.0, &state), ANNULUS_INVALID_ARGUMENT, "NaN");
  CHECK_OK(annulus_plan_destroy(plan));
  CHECK_FAILS(annulus_plan_swap(plan), ANNULUS_INVALID_ARGUMENT, "plan");
}

// A host that keeps tasks for later.
typedef struct host {
  annulus_task* tasks[4];
  int count;
  int answer;
} host;

static int take(void* user, annulus_task* task) {
  host* to = user;
  if (to->answer != 0) return to->answer;
  to->tasks[to->count++] = task;
  return 0;
}

static void on_host(void) {
  static sample made;
  host of = {{NULL, NULL, NULL, NULL}, 0, 0};
  annulus_device_options device_options = sample_options();
  annulus_plan_options options = ANNULUS_PLAN_OPTIONS_INIT;
  annulus_problem problem;
  annulus_device* device = NULL;
  annulus_plan* plans[3] = {NULL, NULL, NULL};
  int32_t state = -1;
  heard told[3] = {{0, -1, ""}, {0, -1, ""}, {0, -1, ""}};
  device_options.execute = take;
  device_options.execute_user = &of;
  CHECK_OK(annulus_device_open(&device_options, &device));
  sample_make(&made, device);
  problem = made.problem;
  problem.pattern = "causal & window(8,0)";
  options.no_wait = 1;
  options.on_ready = hear;
  for (int i = 0; i < 3; ++i) {
    if (i == 2) of.answer = 7;
    options.on_ready_user = &told[i];
    CHECK_OK(annulus_plan_create(device, &problem, &options, &plans[i]));
    CHECK_OK(annulus_plan_state(plans[i], &state));
    CHECK(state == (i == 2 ? ANNULUS_PLAN_GENERAL : ANNULUS_PLAN_COMPILING));
  }
  CHECK(of.count == 2);
  CHECK(strstr(told[2].problem, "returned 7") != NULL);
  CHECK_OK(annulus_task_drop(of.tasks[1]));
  CHECK_OK(annulus_plan_state(plans[1], &state));
  CHECK(state == ANNULUS_PLAN_GENERAL && strstr(told[1].problem, "dropped") != NULL);
  CHECK_OK(annulus_task_run(of.tasks[0]));
  CHECK_OK(annulus_plan_state(plans[0], &state));
  CHECK(state == ANNULUS_PLAN_READY && told[0].calls == 1);
  CHECK_FAILS(annulus_task_run(of.tasks[0]), ANNULUS_INVALID_ARGUMENT, "task");
  CHECK_FAILS(annulus_task_drop(NULL), ANNULUS_INVALID_ARGUMENT, "task");
  for (int i = 0; i < 3; ++i) CHECK_OK(annulus_plan_destroy(plans[i]));
  CHECK_OK(annulus_device_close(device));
}

void test_late_plans(void) {
  on_host();
  static sample made;
  annulus_device* device = sample_open();
  sample_make(&made, device);
  swapped(&made, ANNULUS_SWAP_NEVER, ANNULUS_PLAN_GENERAL);
  swapped(&made, ANNULUS_SWAP_WHEN_ASKED, ANNULUS_PLAN_COMPILED);
  refusals(&made);
  CHECK_OK(annulus_device_close(device));

  device = sample_open();
  sample_make(&made, device);
  swapped(&made, ANNULUS_SWAP_WHEN_READY, ANNULUS_PLAN_READY);
  CHECK_OK(annulus_device_close(device));
}
