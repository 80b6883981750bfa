// Kernels compiled ahead, and devices that do not compile.

#define _POSIX_C_SOURCE 200809L

#include <annulus/c.h>
#include <annulus/c_tools.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "c_abi/check.h"
#include "c_abi/sample.h"

// Removes the files in a folder, and the folder.
static void remove_folder(const char* path) {
  DIR* folder = opendir(path);
  struct dirent* entry = NULL;
  char name[1024];
  CHECK(folder != NULL);
  while (folder != NULL && (entry = readdir(folder)) != NULL) {
    snprintf(name, sizeof name, "%s/%s", path, entry->d_name);
    if (entry->d_name[0] != '.') unlink(name);
  }
  if (folder != NULL) closedir(folder);
  rmdir(path);
}

// Whether a text contains a part. Destroys the text.
static int told(annulus_text* text, const char* part) {
  const char* characters = NULL;
  size_t count = 0;
  int found = 0;
  CHECK_OK(annulus_text_get(text, &characters, &count));
  found = strstr(characters, part) != NULL;
  CHECK_OK(annulus_text_destroy(text));
  return found;
}

typedef struct watched {
  int calls;
  volatile int32_t cancel;
} watched;

static void watch(void* user, const annulus_warm_progress* progress) {
  watched* seen = user;
  ++seen->calls;
  CHECK(progress->struct_size == sizeof *progress);
  CHECK(progress->done >= 1 && progress->done <= progress->kernels && progress->seconds >= 0);
  CHECK(strlen(progress->last) > 5);
}

static annulus_problem problem_of(const char* pattern) {
  annulus_problem problem = ANNULUS_PROBLEM_INIT;
  problem.heads = problem.kv_heads = 2;
  problem.seq_q = problem.seq_k = 70;
  problem.dim_qk = problem.dim_v = 32;
  problem.pattern = pattern;
  return problem;
}

// Compiles the kernels of a plan, of a selection and of a batch.
static void warm(const char* folder, const annulus_problem* problem) {
  annulus_warm_work* work = NULL;
  annulus_warm_options options = ANNULUS_WARM_OPTIONS_INIT;
  annulus_warm_result result = ANNULUS_WARM_RESULT_INIT;
  annulus_warm_failure failure = ANNULUS_WARM_FAILURE_INIT;
  annulus_selection selection = ANNULUS_SELECTION_INIT;
  annulus_batch_problem batch = ANNULUS_BATCH_PROBLEM_INIT;
  annulus_problem wrong = problem_of("causal");
  watched seen = {0, 0};
  selection.block_rows = selection.block_columns = 16;
  selection.max_blocks = 2;
  batch.heads = batch.kv_heads = 2;
  batch.dim_qk = batch.dim_v = 32;
  batch.most.requests = 2;
  batch.most.rows = 2;
  batch.most.keys_of_one = 64;
  CHECK_FAILS(annulus_warm_work_create(NULL), ANNULUS_INVALID_ARGUMENT, "work");
  CHECK_OK(annulus_warm_work_create(&work));
  CHECK_OK(annulus_warm_work_add(work, problem, NULL, NULL));
  CHECK_OK(annulus_warm_work_add(work, problem, NULL, &selection));
  CHECK_OK(annulus_warm_work_add_batch(work, &batch, NULL));
  CHECK_FAILS(annulus_warm_work_add(work, NULL, NULL, NULL), ANNULUS_INVALID_ARGUMENT,
              "annulus_problem");
  options.devices = "sim:sm_80";
  CHECK_FAILS(annulus_warm_work_run(work, &options, &result), ANNULUS_INVALID_ARGUMENT, "absolute");
  options.folder = folder;
  options.threads = -1;
  CHECK_FAILS(annulus_warm_work_run(work, &options, &result), ANNULUS_INVALID_ARGUMENT, "threads");
  options.threads = INT64_MAX;
  CHECK_FAILS(annulus_warm_work_run(work, &options, &result), ANNULUS_INVALID_ARGUMENT,
              "threads is 9223372036854775807");
  options.threads = 2;
  options.progress = watch;
  options.progress_user = &seen;
  options.cancel = &seen.cancel;
  seen.cancel = 1;
  CHECK_OK(annulus_warm_work_run(work, &options, &result));
  CHECK(result.cancelled == 1 && result.compiled == 0 && seen.calls == 0);
  seen.cancel = 0;
  CHECK_OK(annulus_warm_work_run(work, &options, &result));
  CHECK(result.cancelled == 0 && result.failures == 0 && result.left == 0);
  CHECK(result.kernels >= 5 && result.compiled == result.kernels && result.there == 0);
  CHECK(seen.calls == (int)result.kernels && result.bytes > 1000 && result.seconds > 0);
  CHECK_FAILS(annulus_warm_work_get_failure(work, 0, &failure), ANNULUS_INVALID_ARGUMENT,
              "failure 0 of 0");
  // One of two devices does not support such operands.
  wrong.dim_qk = wrong.dim_v = 64;
  wrong.dtype = ANNULUS_FLOAT8_E4M3;
  CHECK_OK(annulus_warm_work_add(work, &wrong, NULL, NULL));
  options.devices = "sim:sm_80,h100";
  CHECK_OK(annulus_warm_work_run(work, &options, &result));
  CHECK(result.failures == 1 && result.there >= 5 && result.compiled >= 5);
  CHECK_OK(annulus_warm_work_get_failure(work, 0, &failure));
  CHECK(strcmp(failure.device, "sim:sm_80") == 0 && failure.status == ANNULUS_UNSUPPORTED);
  CHECK(strstr(failure.wanted, "--dtype e4m3") != NULL && strlen(failure.error) > 10);
  CHECK_OK(annulus_warm_work_destroy(work));
  CHECK_FAILS(annulus_warm_work_destroy(work), ANNULUS_INVALID_ARGUMENT, "given back");
}

static void stop(void* user, const annulus_warm_progress* progress) {
  watched* seen = user;
  if (progress->done > 0) seen->cancel = 1;
}

// General kernels need no problem. Here the first of them is enough.
static void warm_general(const char* folder) {
  annulus_warm_work* work = NULL;
  annulus_warm_options options = ANNULUS_WARM_OPTIONS_INIT;
  annulus_warm_result result = ANNULUS_WARM_RESULT_INIT;
  watched seen = {0, 0};
  options.folder = folder;
  options.devices = "sim:sm_80";
  options.threads = 1;
  options.progress = stop;
  options.progress_user = &seen;
  options.cancel = &seen.cancel;
  CHECK_OK(annulus_warm_work_create(&work));
  CHECK_OK(annulus_warm_work_add_general(work));
  CHECK_OK(annulus_warm_work_run(work, &options, &result));
  CHECK(result.cancelled == 1 && result.kernels >= 20);
  CHECK(result.compiled >= 1 && result.left == result.kernels - result.compiled);
  CHECK_OK(annulus_warm_work_destroy(work));
}

// A file of shapes counts what a device plans.
static void logged(const char* folder, const annulus_problem* problem) {
  annulus_device_options options = sample_options();
  annulus_metrics metrics = ANNULUS_METRICS_INIT;
  annulus_device* device = NULL;
  annulus_plan* plan = NULL;
  char path[512], lock[520], text[512];
  FILE* file = NULL;
  size_t bytes = 0;
  options.shape_log = "shapes";
  CHECK_FAILS(annulus_device_open(&options, &device), ANNULUS_INVALID_ARGUMENT, "absolute");
  snprintf(path, sizeof path, "%s.shapes", folder);
  snprintf(lock, sizeof lock, "%s.lock", path);
  options.shape_log = path;
  CHECK_OK(annulus_device_open(&options, &device));
  CHECK_OK(annulus_plan_create(device, problem, NULL, &plan));
  CHECK_OK(annulus_plan_destroy(plan));
  CHECK_OK(annulus_device_flush_shape_log(device));
  file = fopen(path, "r");
  CHECK(file != NULL);
  bytes = fread(text, 1, sizeof text - 1, file);
  text[bytes] = 0;
  fclose(file);
  CHECK(strstr(text, "--count 1 --heads 2 --seq 70 --dim 32 --pattern") != NULL);
  CHECK_OK(annulus_device_metrics(device, &metrics));
  CHECK(metrics.shape_log_plans == 1 && metrics.shape_log_left_out == 0);
  CHECK(metrics.shape_log_failures == 0);
  CHECK_FAILS(annulus_device_flush_shape_log(NULL), ANNULUS_INVALID_ARGUMENT, "device");
  CHECK_OK(annulus_device_close(device));
  remove(path);
  remove(lock);
}

// The compiled kernels run on a device that does not compile, and no other kernels do.
static void never(const char* folder, const annulus_problem* problem) {
  annulus_device_options options = ANNULUS_DEVICE_OPTIONS_INIT;
  annulus_device_info info = ANNULUS_DEVICE_INFO_INIT;
  annulus_metrics metrics = ANNULUS_METRICS_INIT;
  annulus_device* device = NULL;
  annulus_plan* plan = NULL;
  annulus_problem other = problem_of("window(3,0)");
  options.name = "sim:sm_80";
  options.cache_dir = "";
  options.kernels_path = folder;
  options.compile = 3;
  CHECK_FAILS(annulus_device_open(&options, &device), ANNULUS_INVALID_ARGUMENT, "ANNULUS_COMPILE_");
  options.compile = ANNULUS_COMPILE_NEVER;
  CHECK_OK(annulus_device_open(&options, &device));
  CHECK_OK(annulus_device_get_info(device, &info));
  CHECK(strlen(info.nvrtc_version) == 0 && strlen(info.compile_problem) > 10);
  CHECK(strncmp(info.kernels_path, folder, strlen(folder)) == 0);
  CHECK_OK(annulus_plan_create(device, problem, NULL, &plan));
  CHECK_OK(annulus_plan_destroy(plan));
  CHECK_FAILS(annulus_plan_create(device, &other, NULL, &plan), ANNULUS_LIBRARY,
              "--heads 2 --seq 70 --dim 32 --pattern \"window(3, 0)\"");
  CHECK_OK(annulus_device_metrics(device, &metrics));
  CHECK(metrics.compiles == 0 && metrics.kernels_compiled_ahead == 1);
  CHECK_OK(annulus_device_close(device));
  options.compile = ANNULUS_COMPILE_MISSING;
  CHECK_OK(annulus_device_open(&options, &device));
  CHECK_OK(annulus_device_get_info(device, &info));
  CHECK(strlen(info.nvrtc_version) > 0 && strlen(info.compile_problem) == 0);
  CHECK_OK(annulus_device_close(device));
}

static void care(const char* folder) {
  annulus_prune_options options = ANNULUS_PRUNE_OPTIONS_INIT;
  annulus_prune_result pruned = ANNULUS_PRUNE_RESULT_INIT;
  annulus_verify_result verified = ANNULUS_VERIFY_RESULT_INIT;
  annulus_text* text = NULL;
  char name[1024];
  FILE* file = NULL;
  snprintf(name, sizeof name, "%s/%032d-%016d.kernel", folder, 0, 0);
  file = fopen(name, "w");
  CHECK(file != NULL);
  if (file != NULL) fclose(file);
  CHECK_OK(annulus_kernels_verify(folder, 0, &verified, &text));
  CHECK(verified.kernels >= 10 && verified.damaged == 1 && verified.bytes > 1000);
  CHECK(told(text, ".kernel: it is not a kernel file"));
  CHECK_OK(annulus_kernels_verify(folder, 1, &verified, NULL));
  CHECK_OK(annulus_kernels_verify(folder, 0, &verified, NULL));
  CHECK(verified.damaged == 0);
  CHECK_FAILS(annulus_kernels_verify("/nonexistent/kernels", 0, &verified, NULL), ANNULUS_FILE,
              "/nonexistent/kernels");
  CHECK_FAILS(annulus_kernels_verify(folder, 2, &verified, NULL), ANNULUS_INVALID_ARGUMENT,
              "remove");
  // Kernels for a GPU serve no device here.
  options.folder = folder;
  options.useless = 1;
  CHECK_OK(annulus_kernels_prune(&options, &pruned, &text));
  CHECK(told(text, ""));
  CHECK(pruned.removed >= 5 && pruned.left >= 5 &&
        pruned.left + pruned.removed == verified.kernels);
  options.older_than_seconds = 0.0 / 0.0;
  CHECK_FAILS(annulus_kernels_prune(&options, &pruned, NULL), ANNULUS_INVALID_ARGUMENT,
              "older_than_seconds is NaN");
  CHECK_FAILS(annulus_kernels_prune(NULL, &pruned, NULL), ANNULUS_INVALID_ARGUMENT,
              "annulus_prune_options is null");
}

void test_kernels(void) {
  annulus_problem problem = problem_of("causal");
  annulus_text* text = NULL;
  char folder[] = "/tmp/annulus-c-kernels-XXXXXX";
  CHECK(mkdtemp(folder) != NULL);
  CHECK_OK(annulus_shape_line(&problem, NULL, &text));
  CHECK(told(text, "--heads 2 --seq 70 --dim 32 --pattern \"causal\""));
  CHECK_OK(annulus_gpu_list(&text));
  CHECK(told(text, "h200, sm_90a: H200"));
  CHECK_FAILS(annulus_gpu_list(NULL), ANNULUS_INVALID_ARGUMENT, "text");
  warm(folder, &problem);
  warm_general(folder);
  never(folder, &problem);
  logged(folder, &problem);
  care(folder);
  remove_folder(folder);
}
