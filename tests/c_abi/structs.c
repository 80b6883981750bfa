// struct_size of an older caller, of a newer caller, and unset.

#include <stdlib.h>
#include <string.h>

#include "c_abi/check.h"
#include "c_abi/sample.h"

// A struct as a later version might define it.
typedef struct newer_problem {
  annulus_problem known;
  int64_t added[4];
} newer_problem;

typedef struct newer_info {
  annulus_device_info known;
  int64_t added[4];
} newer_info;

static void wrong_sizes(sample* made) {
  static const size_t sizes[] = {0,    1,        7,          12,        sizeof(annulus_problem) - 1,
                                 4104, 1u << 30, (size_t)-1, (size_t)-8};
  annulus_problem problem = made->problem;
  annulus_operands operands = made->operands;
  annulus_plan_options plan_options = ANNULUS_PLAN_OPTIONS_INIT;
  annulus_device_options device_options = sample_options();
  annulus_device_info device_info = ANNULUS_DEVICE_INFO_INIT;
  annulus_plan_info plan_info = ANNULUS_PLAN_INFO_INIT;
  annulus_block_layout layout = ANNULUS_BLOCK_LAYOUT_INIT;
  annulus_device* device = NULL;
  annulus_plan* plan = NULL;
  annulus_plan* none = NULL;
  size_t i = 0;
  CHECK_OK(annulus_plan_create(made->device, &problem, NULL, &plan));
  for (i = 0; i < sizeof sizes / sizeof sizes[0]; ++i) {
    problem.struct_size = operands.struct_size = plan_options.struct_size = sizes[i];
    device_options.struct_size = device_info.struct_size = plan_info.struct_size = sizes[i];
    layout.struct_size = sizes[i];
    CHECK_FAILS(annulus_device_open(&device_options, &device), ANNULUS_INVALID_ARGUMENT,
                "struct_size of annulus_device_options");
    CHECK_FAILS(annulus_device_get_info(made->device, &device_info), ANNULUS_INVALID_ARGUMENT,
                "initialise it by ANNULUS_DEVICE_INFO_INIT");
    CHECK_FAILS(annulus_plan_create(made->device, &problem, NULL, &none), ANNULUS_INVALID_ARGUMENT,
                "struct_size of annulus_problem");
    CHECK_FAILS(annulus_plan_create(made->device, &made->problem, &plan_options, &none),
                ANNULUS_INVALID_ARGUMENT, "struct_size of annulus_plan_options");
    CHECK_FAILS(annulus_plan_get_info(plan, &plan_info), ANNULUS_INVALID_ARGUMENT,
                "struct_size of annulus_plan_info");
    CHECK_FAILS(annulus_plan_run(plan, NULL, &operands, NULL), ANNULUS_INVALID_ARGUMENT,
                "struct_size of annulus_operands");
    made->problem.layout = &layout;
    CHECK_FAILS(annulus_plan_create(made->device, &made->problem, NULL, &none),
                ANNULUS_INVALID_ARGUMENT, "struct_size of annulus_block_layout");
    made->problem.layout = NULL;
  }
  CHECK(device == NULL && none == NULL);
  CHECK_OK(annulus_plan_destroy(plan));
}

// Every size that an older version may have had, in memory of exactly that size. Missing fields
// have their defaults, and nothing after the end is read.
static void older_callers(const sample* made) {
  size_t size = 0;
  for (size = offsetof(annulus_problem, pattern); size <= sizeof made->problem; size += 8) {
    annulus_problem* problem = malloc(size);
    annulus_plan* plan = NULL;
    memcpy(problem, &made->problem, size);
    problem->struct_size = size;
    CHECK_OK(annulus_plan_create(made->device, problem, NULL, &plan));
    CHECK_OK(annulus_plan_run(plan, NULL, &made->operands, NULL));
    CHECK(sample_error(made, sample_all, NULL) < 1e-2);
    CHECK_OK(annulus_plan_destroy(plan));
    free(problem);
  }
  for (size = 8; size <= sizeof(annulus_device_info); size += 8) {
    annulus_device_info* info = malloc(size);
    annulus_device_info whole = ANNULUS_DEVICE_INFO_INIT;
    memset(info, 0x55, size);
    info->struct_size = size;
    CHECK_OK(annulus_device_get_info(made->device, &whole));
    CHECK_OK(annulus_device_get_info(made->device, info));
    CHECK(info->struct_size == size);
    CHECK(memcmp((char*)info + 8, (char*)&whole + 8, size - 8) == 0);
    free(info);
  }
}

static void newer_callers(const sample* made) {
  newer_problem problem;
  newer_info info;
  annulus_plan* plan = NULL;
  memset(&problem, 0, sizeof problem);
  problem.known = made->problem;
  problem.known.struct_size = sizeof problem;
  CHECK_OK(annulus_plan_create(made->device, &problem.known, NULL, &plan));
  CHECK_OK(annulus_plan_destroy(plan));
  problem.added[2] = 1;
  CHECK_FAILS(annulus_plan_create(made->device, &problem.known, NULL, &plan), ANNULUS_UNSUPPORTED,
              "of annulus_problem is set, but this library");

  memset(&info, 0x55, sizeof info);
  info.known.struct_size = sizeof info;
  CHECK_OK(annulus_device_get_info(made->device, &info.known));
  CHECK(info.known.struct_size == sizeof info);
  CHECK(info.known.multiprocessors > 0);
  CHECK(info.added[0] == 0 && info.added[3] == 0);
}

void test_structs(void) {
  annulus_device* device = sample_open();
  sample* made = malloc(sizeof *made);
  sample_make(made, device);
  wrong_sizes(made);
  older_callers(made);
  newer_callers(made);
  CHECK_OK(annulus_device_close(device));
  free(made);
}
