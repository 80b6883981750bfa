// Tuning: the planned candidates, a search that is cut short, one that ends, and the listed
// results.

#define _DEFAULT_SOURCE

#include <annulus/c_tune.h>
#include <dirent.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <annulus/c_tools.h>
#include "c_abi/check.h"
#include "c_abi/sample.h"

typedef struct watched {
  int calls;
  int64_t done;
  int64_t candidates;
  volatile int32_t cancel;
} watched;

static void watch(void* user, const annulus_tune_progress* progress) {
  watched* told = user;
  ++told->calls;
  told->done = progress->done;
  told->candidates = progress->candidates;
  CHECK(progress->struct_size == sizeof *progress);
  CHECK(strlen(progress->config) > 0 && strlen(progress->outcome) > 0);
  CHECK(strlen(progress->best) > 0 && progress->best_ratio > 0 && progress->seconds >= 0);
  told->cancel = 1;
}

static annulus_tune_result tune(annulus_device* device, const annulus_problem* problem,
                                const annulus_tune_options* options, annulus_tuning** tuning) {
  annulus_tune_result result = ANNULUS_TUNE_RESULT_INIT;
  CHECK_OK(annulus_tuning_create(device, problem, options, tuning));
  CHECK_OK(annulus_tuning_get(*tuning, &result));
  return result;
}

static void planned(annulus_device* device, const annulus_problem* problem) {
  annulus_tune_options options = ANNULUS_TUNE_OPTIONS_INIT;
  annulus_tune_trial trial = ANNULUS_TUNE_TRIAL_INIT;
  annulus_tuning* tuning = NULL;
  annulus_tune_result result;
  options.dry_run = 1;
  result = tune(device, problem, &options, &tuning);
  CHECK(result.status == ANNULUS_TUNE_PLANNED && result.tried == 0);
  CHECK((int64_t)result.trials == result.candidates && result.trials > 3);
  CHECK(strcmp(result.config, result.default_config) == 0);
  CHECK_OK(annulus_tuning_get_trial(tuning, result.trials - 1, &trial));
  CHECK(strcmp(trial.outcome, "not tried") == 0 && trial.model_cycles > 0);
  CHECK_FAILS(annulus_tuning_get_trial(tuning, result.trials, &trial), ANNULUS_INVALID_ARGUMENT,
              "trial ");
  CHECK_OK(annulus_tuning_destroy(tuning));
  CHECK_FAILS(annulus_tuning_get(tuning, &result), ANNULUS_INVALID_ARGUMENT, "the tuning was");
}

// Plans with a selection have separate results.
static void selected(annulus_device* device, const annulus_problem* problem) {
  annulus_tune_options options = ANNULUS_TUNE_OPTIONS_INIT;
  annulus_selection selection = ANNULUS_SELECTION_INIT;
  annulus_tuning* tuning = NULL;
  annulus_tune_result result = ANNULUS_TUNE_RESULT_INIT;
  selection.max_blocks = 2;
  options.dry_run = 1;
  options.selection = &selection;
  CHECK_OK(annulus_tuning_create(device, problem, &options, &tuning));
  CHECK_OK(annulus_tuning_get(tuning, &result));
  CHECK(result.status == ANNULUS_TUNE_PLANNED && result.trials > 3);
  CHECK(strstr(result.shape, "chosen blocks of 128 x 128") != NULL);
  CHECK_OK(annulus_tuning_destroy(tuning));
  selection.max_blocks = -1;
  CHECK_FAILS(annulus_tuning_create(device, problem, &options, &tuning), ANNULUS_INVALID_ARGUMENT,
              "max_blocks");
}

// The callback sets the flag at the first candidate.
static void cancelled(annulus_device* device, const annulus_problem* problem) {
  annulus_tune_options options = ANNULUS_TUNE_OPTIONS_INIT;
  annulus_tuning* tuning = NULL;
  annulus_tune_result result;
  watched told = {0, 0, 0, 0};
  options.progress = watch;
  options.progress_user = &told;
  options.cancel = &told.cancel;
  result = tune(device, problem, &options, &tuning);
  CHECK(result.status == ANNULUS_TUNE_PARTIAL && told.calls > 0);
  CHECK(told.candidates == result.candidates && told.done < result.candidates);
  CHECK_OK(annulus_tuning_destroy(tuning));
}

typedef struct host {
  int asked;
  int measured;
  int results;
  int said;
  char config[128];
} host;

static int32_t may_measure(void* user) { return ++((host*)user)->asked % 2; }
static void measured(void* user) { ++((host*)user)->measured; }
static void said(void* user, const annulus_tune_progress* progress) {
  CHECK(strlen(progress->config) > 0);
  ++((host*)user)->said;
}
static void tuned(void* user, const annulus_tune_result* result) {
  host* to = user;
  ++to->results;
  CHECK(result->struct_size == sizeof *result && result->trials == 0);
  strncpy(to->config, result->config, sizeof to->config - 1);
}
static annulus_task* kept_task = NULL;
static int keep_task(void* user, annulus_task* task) {
  (void)user;
  kept_task = task;
  return 0;
}

// A host that never permits a measurement, and a thread that waits for the tuning.
static int32_t never(void* user) {
  __atomic_add_fetch((int*)user, 1, __ATOMIC_RELAXED);
  return 0;
}

static void* wait_for_it(void* tuning) {
  int32_t done = -1;
  const annulus_status status = annulus_background_tuning_wait(tuning, -1, &done);
  return status == ANNULUS_OK && done == 1 ? tuning : NULL;
}

static void destroyed_while_waited_for(annulus_device* device, const annulus_problem** problems) {
  annulus_background_tuning_options options = ANNULUS_BACKGROUND_TUNING_OPTIONS_INIT;
  annulus_background_tuning* tuning = NULL;
  pthread_t waiting;
  void* ended = NULL;
  int asked = 0, last;
  options.problems = problems;
  options.problem_count = 1;
  options.may_measure = never;
  options.user = &asked;
  options.ask_again_seconds = 1e-3;
  CHECK_OK(annulus_background_tuning_create(device, &options, &tuning));
  CHECK(pthread_create(&waiting, NULL, wait_for_it, tuning) == 0);
  while (__atomic_load_n(&asked, __ATOMIC_RELAXED) < 50) usleep(1000);
  CHECK_OK(annulus_background_tuning_destroy(tuning));
  last = __atomic_load_n(&asked, __ATOMIC_RELAXED);
  CHECK(pthread_join(waiting, &ended) == 0);
  CHECK(ended == tuning);
  usleep(10000);
  CHECK(__atomic_load_n(&asked, __ATOMIC_RELAXED) == last);
}

// The library tunes while its caller continues, and a plan uses the results.
static void in_background(annulus_device* device) {
  annulus_problem problem = ANNULUS_PROBLEM_INIT;
  const annulus_problem* problems[1];
  annulus_background_tuning_options options = ANNULUS_BACKGROUND_TUNING_OPTIONS_INIT;
  annulus_background_tuning_status status = ANNULUS_BACKGROUND_TUNING_STATUS_INIT;
  annulus_plan_options plan_options = ANNULUS_PLAN_OPTIONS_INIT;
  annulus_plan_info info = ANNULUS_PLAN_INFO_INIT;
  annulus_background_tuning* tuning = NULL;
  annulus_plan* plan = NULL;
  host told = {0, 0, 0, 0, ""};
  int32_t can = -1, done = -1;
  problem.heads = problem.kv_heads = 2;
  problem.seq_q = problem.seq_k = 96;
  problem.dim_qk = problem.dim_v = 32;
  problem.pattern = "causal";
  problems[0] = &problem;
  plan_options.follow_tuning = 2;
  CHECK_FAILS(annulus_plan_create(device, &problem, &plan_options, &plan), ANNULUS_INVALID_ARGUMENT,
              "follow_tuning");
  plan_options.follow_tuning = 1;
  plan_options.swap = ANNULUS_SWAP_WHEN_ASKED;
  CHECK_OK(annulus_plan_create(device, &problem, &plan_options, &plan));
  CHECK_OK(annulus_plan_can_swap(plan, &can));
  CHECK(can == 0);
  options.problems = problems;
  options.problem_count = 1;
  options.may_measure = may_measure;
  options.measured = measured;
  options.progress = said;
  options.tuned = tuned;
  options.user = &told;
  options.ask_again_seconds = 1e-4;
  CHECK_OK(annulus_background_tuning_create(device, &options, &tuning));
  CHECK_OK(annulus_background_tuning_pause(tuning));
  CHECK_OK(annulus_background_tuning_resume(tuning));
  CHECK_FAILS(annulus_background_tuning_resume(tuning), ANNULUS_INVALID_ARGUMENT, "not paused");
  CHECK_OK(annulus_background_tuning_wait(tuning, -1, &done));
  CHECK(done == 1);
  CHECK_OK(annulus_background_tuning_cancel(tuning));
  CHECK_OK(annulus_background_tuning_get_status(tuning, &status));
  CHECK(status.state == ANNULUS_BACKGROUND_TUNING_ENDED && status.tuned == 1);
  CHECK(status.measurements > 3 && status.failed == 0 && strlen(status.last_error) == 0);
  CHECK(told.measured >= status.measurements && told.results == 1 && told.said > 3);
  CHECK_OK(annulus_background_tuning_destroy(tuning));
  CHECK_FAILS(annulus_background_tuning_pause(tuning), ANNULUS_INVALID_ARGUMENT,
              "background tuning");
  CHECK_OK(annulus_plan_can_swap(plan, &can));
  CHECK(can == 1);
  CHECK_OK(annulus_plan_swap(plan));
  CHECK_OK(annulus_plan_get_info(plan, &info));
  CHECK(strcmp(info.config, told.config) == 0);
  CHECK_OK(annulus_plan_destroy(plan));

  problem.seq_q = problem.seq_k = 333;  // it has no result
  destroyed_while_waited_for(device, problems);

  // The tuning runs on a thread of the host, which drops the task.
  options.execute = keep_task;
  CHECK_OK(annulus_background_tuning_create(device, &options, &tuning));
  CHECK_OK(annulus_background_tuning_wait(tuning, 0, &done));
  CHECK(done == 0);
  CHECK_OK(annulus_task_drop(kept_task));
  CHECK_OK(annulus_background_tuning_get_status(tuning, &status));
  CHECK(status.state == ANNULUS_BACKGROUND_TUNING_ENDED && strlen(status.last_error) > 0);
  CHECK_OK(annulus_background_tuning_destroy(tuning));
  options.threads = -1;
  CHECK_FAILS(annulus_background_tuning_create(device, &options, &tuning), ANNULUS_INVALID_ARGUMENT,
              "threads");
  options.threads = 1;
  options.problems = NULL;
  CHECK_FAILS(annulus_background_tuning_create(device, &options, &tuning), ANNULUS_INVALID_ARGUMENT,
              "problems");
}

static annulus_batch_problem batch_of_two(void) {
  annulus_batch_problem batch = ANNULUS_BATCH_PROBLEM_INIT;
  batch.heads = kHeads;
  batch.kv_heads = kKvHeads;
  batch.dim_qk = batch.dim_v = kDim;
  batch.pattern = "causal";
  batch.most.requests = 2;
  batch.most.rows = 160;
  batch.most.keys_of_one = 160;
  batch.page_rows = 16;
  return batch;
}

// Each class of a batch's requests has a result, which a plan of the batch uses.
static void of_batch(annulus_device* device) {
  static const annulus_step_requests few[] = {{2, 1, 64}};
  const annulus_batch_problem batch = batch_of_two();
  annulus_tune_options options = ANNULUS_TUNE_OPTIONS_INIT;
  annulus_tuning* tunings[ANNULUS_REQUEST_CLASSES] = {NULL, NULL};
  annulus_tune_result result = ANNULUS_TUNE_RESULT_INIT;
  annulus_tune_trial trial = ANNULUS_TUNE_TRIAL_INIT;
  annulus_batch_plan_info info = ANNULUS_BATCH_PLAN_INFO_INIT;
  annulus_batch_plan_info older;
  annulus_batch_plan* plan = NULL;
  watched told = {0, 0, 0, 0};
  size_t count = 0, i = 0;
  const size_t before = offsetof(annulus_batch_plan_info, tuned);
  options.dry_run = 1;
  CHECK_OK(annulus_tuning_create_batch(device, &batch, NULL, 0, &options, tunings, 2, &count));
  CHECK(count == 2);
  for (i = 0; i < count; ++i) {
    CHECK_OK(annulus_tuning_get(tunings[i], &result));
    CHECK(result.status == ANNULUS_TUNE_PLANNED && result.trials > 3);
    CHECK(strstr(result.shape, i == 0 ? "few queries" : "many queries") != NULL);
    CHECK_OK(annulus_tuning_destroy(tunings[i]));
  }
  options.dry_run = 0;
  options.progress = watch;
  options.progress_user = &told;
  CHECK_OK(annulus_tuning_create_batch(device, &batch, few, 1, &options, tunings, 2, &count));
  CHECK(count == 1 && told.calls > 3);
  CHECK_OK(annulus_tuning_get(tunings[0], &result));
  CHECK(result.status == ANNULUS_TUNED && result.tried > 1 && strlen(result.path) > 0);
  CHECK(told.candidates == result.candidates);
  CHECK_OK(annulus_tuning_get_trial(tunings[0], 0, &trial));
  CHECK_OK(annulus_batch_plan_create(device, &batch, NULL, &plan));
  CHECK_OK(annulus_batch_plan_get_info(plan, &info));
  CHECK(strcmp(info.tuned, result.path) == 0);
  CHECK(strncmp(info.config, result.config, strlen(result.config)) == 0);
  // A caller that was compiled before the field existed.
  memset(&older, 0x55, sizeof older);
  older.struct_size = before;
  CHECK_OK(annulus_batch_plan_get_info(plan, &older));
  CHECK(older.struct_size == before && strcmp(older.config, info.config) == 0);
  memset(&info, 0x55, sizeof info);
  CHECK(memcmp(&older.tuned, &info.tuned, sizeof older.tuned) == 0);
  CHECK_OK(annulus_batch_plan_destroy(plan));
  CHECK_OK(annulus_tuning_destroy(tunings[0]));
  // Its search ends at the first candidate.
  told.cancel = 0;
  options.cancel = &told.cancel;
  options.force = 1;
  CHECK_OK(annulus_tuning_create_batch(device, &batch, few, 1, &options, tunings, 2, &count));
  CHECK_OK(annulus_tuning_get(tunings[0], &result));
  CHECK(count == 1 && result.status == ANNULUS_TUNE_PARTIAL);
  CHECK_OK(annulus_tuning_destroy(tunings[0]));
}

static void batch_in_background(annulus_device* device) {
  const annulus_batch_problem batch = batch_of_two();
  const annulus_batch_problem* batches[1];
  annulus_background_tuning_options options = ANNULUS_BACKGROUND_TUNING_OPTIONS_INIT;
  annulus_background_tuning_status status = ANNULUS_BACKGROUND_TUNING_STATUS_INIT;
  annulus_background_tuning* tuning = NULL;
  host told = {0, 0, 0, 0, ""};
  int32_t done = -1;
  batches[0] = &batch;
  options.batches = batches;
  options.batch_count = 1;
  options.tuned = tuned;
  options.user = &told;
  CHECK_OK(annulus_background_tuning_create(device, &options, &tuning));
  CHECK_OK(annulus_background_tuning_wait(tuning, -1, &done));
  CHECK_OK(annulus_background_tuning_get_status(tuning, &status));
  CHECK(done == 1 && status.state == ANNULUS_BACKGROUND_TUNING_ENDED && status.failed == 0);
  CHECK(status.tuned + status.already_there == 2 && told.results == 2);
  CHECK_OK(annulus_background_tuning_destroy(tuning));
  options.batches = NULL;
  CHECK_FAILS(annulus_background_tuning_create(device, &options, &tuning), ANNULUS_INVALID_ARGUMENT,
              "batches");
}

// A search path that has only packs accepts no new result.
static void nowhere_to_keep(const annulus_problem* problem) {
  annulus_device_options options = sample_options();
  annulus_device* device = NULL;
  annulus_tuning* tuning = NULL;
  options.tuned_path = "/nowhere/a.pack";
  CHECK_OK(annulus_device_open(&options, &device));
  CHECK_FAILS(annulus_tuning_create(device, problem, NULL, &tuning), ANNULUS_FILE,
              "their search path has no folder, and results cannot be added to packs");
  CHECK_OK(annulus_device_close(device));
}

// A host that closes the device in a callback, which is not permitted.
typedef struct closing {
  annulus_device* device;
  int calls;
} closing;

static void close_at(void* user, const annulus_tune_progress* progress) {
  closing* at = user;
  (void)progress;
  ++at->calls;
  CHECK_FAILS(annulus_device_close(at->device), ANNULUS_INVALID_ARGUMENT,
              "a callback of a background tuning closes the device");
}

static void closed_in_a_callback(annulus_device* device, const annulus_problem* problem) {
  const annulus_problem* problems[1];
  annulus_background_tuning_options options = ANNULUS_BACKGROUND_TUNING_OPTIONS_INIT;
  annulus_background_tuning* tuning = NULL;
  annulus_problem another = *problem;
  closing at = {device, 0};
  another.seq_q = another.seq_k = 3 * kRows;  // it has no result
  problems[0] = &another;
  options.problems = problems;
  options.problem_count = 1;
  options.progress = close_at;
  options.user = &at;
  CHECK_OK(annulus_background_tuning_create(device, &options, &tuning));
  CHECK_OK(annulus_background_tuning_wait(tuning, -1, NULL));
  CHECK_OK(annulus_background_tuning_destroy(tuning));
  CHECK(at.calls > 3);
  CHECK_OK(annulus_device_synchronize(device));
}

static void refused_batches(annulus_device* device) {
  static const annulus_step_requests beyond[] = {{2, 1, 64}, {1, 1, 64}};
  annulus_batch_problem batch = batch_of_two();
  annulus_tune_options options = ANNULUS_TUNE_OPTIONS_INIT;
  annulus_tuning* tunings[ANNULUS_REQUEST_CLASSES] = {NULL, NULL};
  size_t count = 7;
#define REFUSED(problem, step, steps, to, room, number, part)                                \
  CHECK_FAILS(                                                                               \
      annulus_tuning_create_batch(device, problem, step, steps, &options, to, room, number), \
      ANNULUS_INVALID_ARGUMENT, part)
  REFUSED(&batch, beyond, 2, tunings, 2, &count, "are not within the bounds");
  REFUSED(&batch, NULL, 1, tunings, 2, &count, "step is null");
  REFUSED(&batch, beyond, SIZE_MAX, tunings, 2, &count, "a step of 18446744073709551615 entries");
  REFUSED(&batch, NULL, 0, NULL, 2, &count, "tunings");
  REFUSED(&batch, NULL, 0, tunings, 2, NULL, "count");
  REFUSED(&batch, NULL, 0, tunings, 1, &count, "memory for 1 tunings");
  REFUSED(NULL, NULL, 0, tunings, 2, &count, "annulus_batch_problem is null");
  options.force = 2;
  REFUSED(&batch, NULL, 0, tunings, 2, &count, "force is 2");
  options.force = 0;
  options.time_limit_seconds = -1;
  REFUSED(&batch, NULL, 0, tunings, 2, &count, "a time limit of -1 seconds");
  batch.most.requests = 0;
  REFUSED(&batch, NULL, 0, tunings, 2, &count, "requests");
  CHECK_FAILS(annulus_tuning_create_batch(NULL, &batch, NULL, 0, NULL, tunings, 2, &count),
              ANNULUS_INVALID_ARGUMENT, "device is null");
#undef REFUSED
  CHECK(tunings[0] == NULL && count == 7);
}

// The journal of a search leads to the same decision as the search.
static void replayed(const annulus_tune_result* result) {
  annulus_tune_result again = ANNULUS_TUNE_RESULT_INIT;
  annulus_tuning* tuning = NULL;
  watched told = {0, 0, 0, 0};
  CHECK(strlen(result->journal) > 0);
  CHECK_OK(annulus_tuning_replay(result->journal, watch, &told, &tuning));
  CHECK_OK(annulus_tuning_get(tuning, &again));
  CHECK(again.status == ANNULUS_TUNED && strcmp(again.config, result->config) == 0);
  CHECK(again.ratio == result->ratio && told.calls == again.tried + again.dropped);
  CHECK(again.resumed == told.calls);
  CHECK_OK(annulus_tuning_destroy(tuning));
  CHECK_FAILS(annulus_tuning_replay("/nowhere/a.journal", NULL, NULL, &tuning), ANNULUS_FILE,
              "/nowhere/a.journal");
  CHECK_FAILS(annulus_tuning_replay(result->path, NULL, NULL, &tuning), ANNULUS_INVALID_FILE,
              "is not a journal");
  CHECK_FAILS(annulus_tuning_replay(NULL, NULL, NULL, &tuning), ANNULUS_INVALID_ARGUMENT,
              "journal");
}

// A document contains the search of a journal, and the results of a search path.
static void reported(const annulus_tune_result* result, const char* folder) {
  annulus_tuning_report_info info = ANNULUS_TUNING_REPORT_INFO_INIT;
  annulus_tuning_report* report = NULL;
  CHECK_OK(annulus_tuning_report_make(&result->journal, 1, NULL, &report));
  CHECK_OK(annulus_tuning_report_get(report, &info));
  CHECK(info.searches == 1 && info.entries == 0 && strcmp(info.left_out, "") == 0);
  CHECK(strstr(info.json, "{\"schema\":1,") == info.json &&
        strstr(info.json, result->config) != NULL);
  CHECK_OK(annulus_tuning_report_destroy(report));
  CHECK_FAILS(annulus_tuning_report_get(report, &info), ANNULUS_INVALID_ARGUMENT, "given back");
  CHECK_OK(annulus_tuning_report_make(&result->path, 1, NULL, &report));
  CHECK_OK(annulus_tuning_report_get(report, &info));
  CHECK(info.searches == 0 && info.entries == 1);
  CHECK_OK(annulus_tuning_report_destroy(report));
  CHECK_OK(annulus_tuning_report_make(NULL, 0, folder, &report));
  CHECK_OK(annulus_tuning_report_get(report, &info));
  CHECK(info.searches == 1 && info.entries == 0);
  CHECK_OK(annulus_tuning_report_destroy(report));
  CHECK_FAILS(annulus_tuning_report_make(NULL, 1, NULL, &report), ANNULUS_INVALID_ARGUMENT,
              "paths");
  CHECK_FAILS(annulus_tuning_report_make(&folder, 1, NULL, NULL), ANNULUS_INVALID_ARGUMENT,
              "report");
  folder = "/nowhere/a.journal";
  CHECK_FAILS(annulus_tuning_report_make(&folder, 1, NULL, &report), ANNULUS_FILE, folder);
}

static void found(annulus_device* device, const annulus_problem* problem, const char* folder) {
  annulus_tune_options options = ANNULUS_TUNE_OPTIONS_INIT;
  annulus_tuned_info info = ANNULUS_TUNED_INFO_INIT;
  annulus_tuned_entry entry = ANNULUS_TUNED_ENTRY_INIT;
  annulus_plan_info plan_info = ANNULUS_PLAN_INFO_INIT;
  annulus_tuned_list* list = NULL;
  annulus_tuning* tuning = NULL;
  annulus_tuning* again = NULL;
  annulus_plan* plan = NULL;
  annulus_tune_result result;
  options.force = 1;
  options.keep_journal = 1;
  result = tune(device, problem, &options, &tuning);
  CHECK(result.status == ANNULUS_TUNED && result.tried > 1 && result.time > 0);
  replayed(&result);
  reported(&result, folder);
  CHECK(result.ratio <= 1 && result.ratio_low <= result.ratio && strlen(result.path) > 0);
  CHECK(tune(device, problem, NULL, &again).status == ANNULUS_TUNED_ALREADY);
  CHECK_OK(annulus_tuning_destroy(again));
  CHECK_OK(annulus_tuned_list_read(folder, &list));
  CHECK_OK(annulus_tuned_list_get(list, &info));
  CHECK(strcmp(info.folders, folder) == 0 && strcmp(info.ignored, "") == 0 && info.entries == 1);
  CHECK_OK(annulus_tuned_list_get_entry(list, 0, &entry));
  CHECK(strcmp(entry.config, result.config) == 0 && strcmp(entry.path, result.path) == 0);
  CHECK(strcmp(entry.shape, result.shape) == 0 && strlen(entry.device) > 0);
  CHECK(entry.complete == 1 && entry.predicted == result.predicted);
  CHECK(entry.seq_q == kRows && entry.heads == kHeads && entry.kv_heads == kKvHeads);
  CHECK(entry.library_version == annulus_version() && entry.when > 1500000000);
  CHECK_FAILS(annulus_tuned_list_get_entry(list, 1, &entry), ANNULUS_INVALID_ARGUMENT,
              "entry 1 of 1");
  CHECK_OK(annulus_plan_create(device, problem, NULL, &plan));
  CHECK_OK(annulus_plan_get_info(plan, &plan_info));
  CHECK(strcmp(plan_info.tuned, entry.path) == 0);
  CHECK_OK(annulus_plan_destroy(plan));
  CHECK_OK(annulus_tuned_list_destroy(list));
  CHECK_OK(annulus_tuning_destroy(tuning));
}

static void refused(annulus_device* device, const annulus_problem* problem) {
  annulus_tune_options options = ANNULUS_TUNE_OPTIONS_INIT;
  annulus_problem empty = *problem;
  annulus_tuned_list* list = NULL;
  annulus_tuned_info info = ANNULUS_TUNED_INFO_INIT;
  annulus_tuning* none = NULL;
#define REFUSED(field, value, part)                                                                \
  do {                                                                                             \
    const annulus_tune_options defaults = ANNULUS_TUNE_OPTIONS_INIT;                               \
    options.field = (value);                                                                       \
    CHECK_FAILS(annulus_tuning_create(device, problem, &options, &none), ANNULUS_INVALID_ARGUMENT, \
                part);                                                                             \
    options = defaults;                                                                            \
  } while (0)
  REFUSED(time_limit_seconds, -1.0, "a time limit of -1 seconds");
  REFUSED(dry_run, 2, "dry_run is 2");
  REFUSED(exhaustive, -1, "exhaustive is -1");
  REFUSED(force, 7, "force is 7");
  REFUSED(cold_cache, 7, "cold_cache is 7");
  REFUSED(struct_size, 0, "struct_size of annulus_tune_options is 0");
#undef REFUSED
  empty.batch = 0;
  CHECK_FAILS(annulus_tuning_create(device, &empty, NULL, &none), ANNULUS_INVALID_ARGUMENT,
              "nothing to tune");
  CHECK_FAILS(annulus_tuning_create(device, NULL, NULL, &none), ANNULUS_INVALID_ARGUMENT,
              "annulus_problem is null");
  CHECK_FAILS(annulus_tuning_create(NULL, problem, NULL, &none), ANNULUS_INVALID_ARGUMENT,
              "device is null");
  CHECK_FAILS(annulus_tuning_create(device, problem, NULL, NULL), ANNULUS_INVALID_ARGUMENT,
              "tuning");
  CHECK(none == NULL);
  CHECK_OK(annulus_tuned_list_read("/no/such/folder", &list));
  CHECK_OK(annulus_tuned_list_get(list, &info));
  CHECK(info.entries == 0 && strcmp(info.folders, "/no/such/folder") == 0);
  CHECK_OK(annulus_tuned_list_destroy(list));
  CHECK_FAILS(annulus_tuned_list_get(list, &info), ANNULUS_INVALID_ARGUMENT, "given back");
  CHECK_FAILS(annulus_tuned_list_read(NULL, NULL), ANNULUS_INVALID_ARGUMENT, "list");
}

// Removes a folder with its folders and files.
static void remove_folder(const char* path) {
  DIR* folder = opendir(path);
  struct dirent* each = NULL;
  char inside[1024];
  if (folder == NULL) return;
  while ((each = readdir(folder)) != NULL) {
    if (strcmp(each->d_name, ".") == 0 || strcmp(each->d_name, "..") == 0) continue;
    snprintf(inside, sizeof inside, "%s/%s", path, each->d_name);
    if (unlink(inside) != 0) remove_folder(inside);
  }
  closedir(folder);
  rmdir(path);
}

void test_tune(void) {
  const char* parent = getenv("TMPDIR");
  annulus_device_options options = sample_options();
  annulus_device* device = NULL;
  annulus_problem problem = ANNULUS_PROBLEM_INIT;
  char folder[512];
  snprintf(folder, sizeof folder, "%s/annulus_c_XXXXXX", parent == NULL ? "/tmp" : parent);
  CHECK(mkdtemp(folder) != NULL);
  options.tuned_path = folder;
  CHECK_OK(annulus_device_open(&options, &device));
  problem.heads = kHeads;
  problem.kv_heads = kKvHeads;
  problem.seq_q = problem.seq_k = kRows;
  problem.dim_qk = problem.dim_v = kDim;
  planned(device, &problem);
  selected(device, &problem);
  refused(device, &problem);
  cancelled(device, &problem);
  found(device, &problem, folder);
  in_background(device);
  of_batch(device);
  batch_in_background(device);
  closed_in_a_callback(device, &problem);
  refused_batches(device);
  nowhere_to_keep(&problem);
  CHECK_OK(annulus_device_close(device));
  remove_folder(folder);
}
