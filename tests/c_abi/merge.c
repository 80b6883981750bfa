// Merging the answers over halves of the keys: three inputs, one of them empty, and rejected input.

#include <annulus/c_batch.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "c_abi/check.h"
#include "c_abi/sample.h"

enum {
  kMergedDim = 8,
  kMergedHeads = 2,
  kMergedRows = 2,
  kMergedLses = kMergedRows * kMergedHeads
};
enum { kMergedElements = kMergedLses * kMergedDim };

typedef struct sample_merge {
  annulus_device* device;
  annulus_merge_problem problem;
  annulus_merge_plan* plan;
  annulus_merge_input inputs[3];
  annulus_merge_operands operands;
} sample_merge;

static void* put(annulus_device* device, const void* data, size_t bytes) {
  void* memory = NULL;
  CHECK_OK(annulus_device_allocate(device, bytes, &memory));
  CHECK_OK(annulus_device_copy_to_device(device, memory, data, bytes));
  return memory;
}

// O of the inputs is 1, 3 and 100. Their LSE in base 2 is 1, 1 and -inf. In the last head of the
// last row it is 1, -inf and -inf.
static void make(sample_merge* merge, annulus_device* device) {
  static const uint16_t values[3] = {0x3f80, 0x4040, 0x42c8};
  const annulus_merge_problem problem = ANNULUS_MERGE_PROBLEM_INIT;
  const annulus_merge_operands operands = ANNULUS_MERGE_OPERANDS_INIT;
  const annulus_row_strides o_rows = {kMergedHeads * kMergedDim, kMergedDim};
  const annulus_row_strides lse_rows = {kMergedHeads, 1};
  int input = 0, i = 0;
  memset(merge, 0, sizeof *merge);
  merge->device = device;
  merge->problem = problem;
  merge->problem.heads = kMergedHeads;
  merge->problem.dim_v = kMergedDim;
  merge->problem.inputs = 3;
  merge->problem.max_rows = kMergedRows;
  merge->problem.lse_base = ANNULUS_LSE_TWO;
  CHECK_OK(annulus_merge_problem_validate(&merge->problem));
  CHECK_OK(annulus_merge_plan_create(device, &merge->problem, &merge->plan));
  for (input = 0; input < 3; ++input) {
    uint16_t o[kMergedElements];
    float lse[kMergedLses];
    for (i = 0; i < kMergedElements; ++i) o[i] = values[input];
    for (i = 0; i < kMergedLses; ++i) {
      lse[i] = input == 2 || (input == 1 && i == kMergedLses - 1) ? -INFINITY : 1.0f;
    }
    merge->inputs[input].o = put(device, o, sizeof o);
    merge->inputs[input].lse = put(device, lse, sizeof lse);
  }
  merge->operands = operands;
  merge->operands.inputs = merge->inputs;
  merge->operands.input_o_strides = merge->operands.o_strides = o_rows;
  merge->operands.input_lse_strides = merge->operands.lse_strides = lse_rows;
}

static void check_merged(const sample_merge* merge) {
  annulus_merge_plan_info info = ANNULUS_MERGE_PLAN_INFO_INIT;
  annulus_merge_operands operands = merge->operands;
  const int32_t one = 1;
  uint16_t o[kMergedElements] = {0};
  float lse[kMergedLses] = {0};
  int i = 0, differ = 0;
  CHECK_OK(annulus_merge_plan_get_info(merge->plan, &info));
  CHECK(strstr(info.specialised_source, "merge_outputs") != NULL);
  CHECK(info.ctas == 1 && info.threads >= 32 && info.registers > 0 && info.compile_ms > 0);
  operands.o = put(merge->device, o, sizeof o);
  operands.lse = put(merge->device, lse, sizeof lse);
  // Runs the first row only, and then all rows.
  operands.rows = put(merge->device, &one, sizeof one);
  CHECK_OK(annulus_merge_plan_run(merge->plan, NULL, &operands));
  CHECK_OK(annulus_device_copy_to_host(merge->device, o, operands.o, sizeof o));
  CHECK(o[0] == 0x4000 && o[kMergedElements / 2 - 1] == 0x4000 && o[kMergedElements / 2] == 0);
  operands.rows = NULL;
  CHECK_OK(annulus_merge_plan_run(merge->plan, NULL, &operands));
  CHECK_OK(annulus_device_copy_to_host(merge->device, o, operands.o, sizeof o));
  CHECK_OK(annulus_device_copy_to_host(merge->device, lse, operands.lse, sizeof lse));
  for (i = 0; i < kMergedElements; ++i) {
    differ += o[i] != (i < kMergedElements - kMergedDim ? 0x4000 : 0x3f80);
  }
  for (i = 0; i < kMergedLses; ++i) differ += lse[i] != (i < kMergedLses - 1 ? 2.0f : 1.0f);
  CHECK(differ == 0);
}

static void wrong_problems(const sample_merge* merge) {
  annulus_merge_problem problem = merge->problem;
  annulus_merge_plan* none = NULL;
  CHECK_FAILS(annulus_merge_problem_validate(NULL), ANNULUS_INVALID_ARGUMENT,
              "annulus_merge_problem is null");
  problem.dim_v = 12;
  CHECK_FAILS(annulus_merge_problem_validate(&problem), ANNULUS_UNSUPPORTED, "dim_v is 12");
  CHECK_FAILS(annulus_merge_plan_create(merge->device, &problem, &none), ANNULUS_UNSUPPORTED,
              "dim_v is 12");
  CHECK(none == NULL);
  problem.inputs = ANNULUS_MAX_MERGE_INPUTS + 1;
  problem.dim_v = kMergedDim;
  CHECK_FAILS(annulus_merge_problem_validate(&problem), ANNULUS_INVALID_ARGUMENT, "inputs is 17");
  problem.struct_size = 12;
  CHECK_FAILS(annulus_merge_problem_validate(&problem), ANNULUS_INVALID_ARGUMENT,
              "struct_size of annulus_merge_problem is 12");
  CHECK_FAILS(annulus_merge_plan_create(merge->device, &merge->problem, NULL),
              ANNULUS_INVALID_ARGUMENT, "plan (where the handle goes) is null");
}

static void wrong_runs(const sample_merge* merge) {
  annulus_merge_operands operands = merge->operands;
  CHECK_FAILS(annulus_merge_plan_run(merge->plan, NULL, NULL), ANNULUS_INVALID_ARGUMENT,
              "annulus_merge_operands is null");
  operands.input_count = (size_t)merge->problem.inputs + 1;
  CHECK_FAILS(annulus_merge_plan_run(merge->plan, NULL, &operands), ANNULUS_INVALID_ARGUMENT,
              "entries, but");
  operands.input_count = (size_t)merge->problem.inputs;
  CHECK_FAILS(annulus_merge_plan_run(merge->plan, NULL, &operands), ANNULUS_INVALID_ARGUMENT,
              "O is null");
  operands.o = (void*)merge->inputs[1].o;
  CHECK_FAILS(annulus_merge_plan_run(merge->plan, NULL, &operands), ANNULUS_INVALID_ARGUMENT,
              "give the tensor that is written memory of its own");
  operands.inputs = NULL;
  CHECK_FAILS(annulus_merge_plan_run(merge->plan, NULL, &operands), ANNULUS_INVALID_ARGUMENT,
              "inputs is null");
  CHECK_FAILS(annulus_merge_plan_get_info(merge->plan, NULL), ANNULUS_INVALID_ARGUMENT,
              "annulus_merge_plan_info is null");
}

static void wrong_handle(annulus_merge_plan* handle, const sample_merge* merge, const char* part) {
  annulus_merge_plan_info info = ANNULUS_MERGE_PLAN_INFO_INIT;
  CHECK_FAILS(annulus_merge_plan_get_info(handle, &info), ANNULUS_INVALID_ARGUMENT, part);
  CHECK_FAILS(annulus_merge_plan_run(handle, NULL, &merge->operands), ANNULUS_INVALID_ARGUMENT,
              part);
  CHECK_FAILS(annulus_merge_plan_destroy(handle), ANNULUS_INVALID_ARGUMENT, part);
}

void test_merge(void) {
  annulus_device* device = sample_open();
  sample_merge* merge = malloc(sizeof *merge);
  make(merge, device);
  check_merged(merge);
  wrong_problems(merge);
  wrong_runs(merge);
  wrong_handle(NULL, merge, "the merge plan is null");
  wrong_handle((annulus_merge_plan*)device, merge, "is not a handle of type merge plan");
  CHECK_OK(annulus_merge_plan_destroy(merge->plan));
  wrong_handle(merge->plan, merge, "the merge plan was given back already");
  CHECK_OK(annulus_device_close(device));
  free(merge);
}
