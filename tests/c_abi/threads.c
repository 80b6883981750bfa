// One plan on several threads, plans that are destroyed while other threads run them, and errors
// that belong to their thread.

#define _POSIX_C_SOURCE 200809L

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "c_abi/check.h"
#include "c_abi/sample.h"

enum { kThreads = 4, kRuns = 20 };

typedef struct worker {
  pthread_t thread;
  const sample* made;
  annulus_plan* plan;
  void* o;  // separate for each worker
  int wrong;
  int gone;
} worker;

// CHECK may be used only on the main thread, so workers count errors.
static void* run_often(void* argument) {
  worker* self = argument;
  annulus_operands operands = self->made->operands;
  int run = 0;
  operands.o = self->o;
  for (run = 0; run < kRuns; ++run) {
    self->wrong += annulus_plan_run(self->plan, NULL, &operands, NULL) != ANNULUS_OK;
  }
  return NULL;
}

static void one_plan(const sample* made) {
  worker workers[kThreads];
  annulus_plan* plan = NULL;
  annulus_problem problem = made->problem;
  int i = 0;
  problem.pattern = "causal";
  CHECK_OK(annulus_plan_create(made->device, &problem, NULL, &plan));
  for (i = 0; i < kThreads; ++i) {
    memset(&workers[i], 0, sizeof workers[i]);
    workers[i].made = made;
    workers[i].plan = plan;
    CHECK_OK(annulus_device_allocate(made->device, kRows * kHeads * kDim * 2, &workers[i].o));
  }
  for (i = 0; i < kThreads; ++i) {
    CHECK(pthread_create(&workers[i].thread, NULL, run_often, &workers[i]) == 0);
  }
  for (i = 0; i < kThreads; ++i) {
    sample answer = *made;
    CHECK(pthread_join(workers[i].thread, NULL) == 0);
    CHECK(workers[i].wrong == 0);
    answer.operands.o = workers[i].o;
    CHECK(sample_error(&answer, sample_causal, NULL) < 1e-2);
    CHECK_OK(annulus_device_release(made->device, workers[i].o));
  }
  CHECK_OK(annulus_plan_destroy(plan));
}

// Runs until the plan is destroyed. Every call must succeed or be refused.
static void* run_until_gone(void* argument) {
  worker* self = argument;
  annulus_operands operands = self->made->operands;
  annulus_status status = ANNULUS_OK;
  operands.o = self->o;
  while (status == ANNULUS_OK) status = annulus_plan_run(self->plan, NULL, &operands, NULL);
  self->gone = status == ANNULUS_INVALID_ARGUMENT &&
               strstr(annulus_last_error(), "given back already") != NULL;
  // Only one of the threads that destroy it succeeds.
  self->wrong += annulus_plan_destroy(self->plan) == ANNULUS_OK;
  return NULL;
}

static void destroyed_meanwhile(const sample* made) {
  int round = 0;
  for (round = 0; round < 10; ++round) {
    worker workers[kThreads];
    annulus_plan* plan = NULL;
    int i = 0;
    CHECK_OK(annulus_plan_create(made->device, &made->problem, NULL, &plan));
    for (i = 0; i < kThreads; ++i) {
      memset(&workers[i], 0, sizeof workers[i]);
      workers[i].made = made;
      workers[i].plan = plan;
      CHECK_OK(annulus_device_allocate(made->device, kRows * kHeads * kDim * 2, &workers[i].o));
      CHECK(pthread_create(&workers[i].thread, NULL, run_until_gone, &workers[i]) == 0);
    }
    CHECK_OK(annulus_plan_destroy(plan));
    for (i = 0; i < kThreads; ++i) {
      CHECK(pthread_join(workers[i].thread, NULL) == 0);
      CHECK(workers[i].gone && workers[i].wrong == 0);
      CHECK_OK(annulus_device_release(made->device, workers[i].o));
    }
  }
}

static void* fail_differently(void* argument) {
  worker* self = argument;
  size_t bytes = 0;
  self->wrong += strcmp(annulus_last_error(), "") != 0;
  self->wrong += annulus_plan_workspace_bytes(NULL, &bytes) != ANNULUS_INVALID_ARGUMENT;
  self->wrong += strstr(annulus_last_error(), "the plan is null") == NULL;
  return NULL;
}

static void errors_per_thread(void) {
  worker self;
  memset(&self, 0, sizeof self);
  CHECK_FAILS(annulus_device_close(NULL), ANNULUS_INVALID_ARGUMENT, "the device is null");
  CHECK(pthread_create(&self.thread, NULL, fail_differently, &self) == 0);
  CHECK(pthread_join(self.thread, NULL) == 0);
  CHECK(self.wrong == 0);
  CHECK(strstr(annulus_last_error(), "the device is null") != NULL);
}

void test_threads(void) {
  annulus_device* device = sample_open();
  sample* made = malloc(sizeof *made);
  sample_make(made, device);
  one_plan(made);
  destroyed_meanwhile(made);
  errors_per_thread();
  CHECK_OK(annulus_device_close(device));
  free(made);
}
