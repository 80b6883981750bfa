/* The caller's streams and events on a simulated device. They are made with functions of the
 * device's driver, so the program neither links nor opens a driver. */

#include <stdint.h>
#include <string.h>

#include "c_abi/check.h"

enum { kRows = 64, kDim = 32, kBytes = kRows * kDim * 2 };

static annulus_device* device = NULL;

typedef void (*any_function)(void);

/* Converts an address of data to a function in a way that C99 permits. */
static any_function entry(const char* name) {
  void* found = NULL;
  any_function function = NULL;
  CHECK_OK(annulus_device_driver_entry(device, name, &found));
  CHECK(found != NULL);
  memcpy(&function, &found, sizeof function);
  return function;
}

#define DRIVER(name, types, arguments) CHECK(((int(*) types)entry(name))arguments == 0)

static void run_on_stream(void* stream, void* event) {
  annulus_problem problem = ANNULUS_PROBLEM_INIT;
  annulus_operands operands = ANNULUS_OPERANDS_INIT;
  const annulus_strides strides = {kRows * kDim, kDim, kDim};
  annulus_plan* plan = NULL;
  void *tensor = NULL, *o = NULL;
  uint16_t ones[kRows * kDim];
  uint16_t answer[kRows * kDim];
  int i = 0;
  int same = 1;
  for (i = 0; i < kRows * kDim; ++i) ones[i] = 0x3f80;
  problem.batch = problem.heads = problem.kv_heads = 1;
  problem.seq_q = problem.seq_k = kRows;
  problem.dim_qk = problem.dim_v = kDim;
  problem.pattern = "causal";
  CHECK_OK(annulus_plan_create(device, &problem, NULL, &plan));
  CHECK_OK(annulus_device_allocate(device, kBytes, &tensor));
  CHECK_OK(annulus_device_allocate(device, kBytes, &o));
  CHECK_OK(annulus_device_copy_to_device(device, tensor, ones, kBytes));
  operands.q = operands.k = operands.v = tensor;
  operands.o = o;
  operands.q_strides = operands.k_strides = operands.v_strides = operands.o_strides = strides;
  CHECK_OK(annulus_plan_run(plan, stream, &operands, NULL));
  DRIVER("cuEventRecord", (void*, void*), (event, stream));
  DRIVER("cuEventSynchronize", (void*), (event));
  CHECK_OK(annulus_device_copy_to_host(device, answer, o, kBytes));
  for (i = 0; i < kRows * kDim; ++i) same = same && answer[i] == 0x3f80;
  CHECK(same);
  CHECK_OK(annulus_plan_destroy(plan));
}

void test_driver_entry(void) {
  annulus_device_options options = ANNULUS_DEVICE_OPTIONS_INIT;
  annulus_device_info info = ANNULUS_DEVICE_INFO_INIT;
  void *context = NULL, *stream = NULL, *event = NULL, *found = &found;
  options.name = "sim:sm_80:3";
  CHECK_OK(annulus_device_open(&options, &device));
  CHECK_OK(annulus_device_get_info(device, &info));
  CHECK(info.ordinal == 3);
  DRIVER("cuDevicePrimaryCtxRetain", (void**, int), (&context, (int)info.ordinal));
  DRIVER("cuCtxSetCurrent", (void*), (context));
  DRIVER("cuStreamCreate", (void**, unsigned), (&stream, 1));
  DRIVER("cuEventCreate", (void**, unsigned), (&event, 0));
  run_on_stream(stream, event);
  DRIVER("cuEventDestroy_v2", (void*), (event));
  DRIVER("cuStreamDestroy_v2", (void*), (stream));
  DRIVER("cuCtxSetCurrent", (void*), (NULL));
  DRIVER("cuDevicePrimaryCtxRelease_v2", (int), ((int)info.ordinal));
  /* Functions that only a simulated driver has are found in the same way. */
  CHECK(entry("annulusSimulatorCounters") != NULL);

  CHECK_OK(annulus_device_driver_entry(device, "cuNoSuchThing", &found));
  CHECK(found == NULL);
  CHECK_FAILS(annulus_device_driver_entry(device, NULL, &found), ANNULUS_INVALID_ARGUMENT, "name");
  CHECK_FAILS(annulus_device_driver_entry(device, "cuInit", NULL), ANNULUS_INVALID_ARGUMENT,
              "entry");
  CHECK_OK(annulus_device_close(device));
  CHECK_FAILS(annulus_device_driver_entry(device, "cuInit", &found), ANNULUS_INVALID_ARGUMENT, "");
}
