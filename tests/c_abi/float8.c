// e4m3 with scales, and split rows, on a simulated device of sm_90a: rejected input, and NaN.

#include <stdlib.h>
#include <string.h>

#include "c_abi/check.h"
#include "c_abi/sample.h"

enum { kQueries = 70, kKeys = 200, kColumns = 64, kOne = 0x38 /* 1.0 as e4m3 */ };

static annulus_device* the_device = NULL;

static annulus_problem float8_problem(void) {
  annulus_problem problem = ANNULUS_PROBLEM_INIT;
  problem.seq_q = kQueries;
  problem.seq_k = kKeys;
  problem.dim_qk = problem.dim_v = kColumns;
  problem.dtype = ANNULUS_FLOAT8_E4M3;
  problem.scale_block_q = problem.scale_block_k = problem.scale_block_v = 64;
  return problem;
}

static void* filled(size_t bytes, int byte) {
  void* memory = NULL;
  void* host = malloc(bytes);
  memset(host, byte, bytes);
  CHECK_OK(annulus_device_allocate(the_device, bytes, &memory));
  CHECK_OK(annulus_device_copy_to_device(the_device, memory, host, bytes));
  free(host);
  return memory;
}

static void refused_plans(void) {
  annulus_plan* plan = NULL;
  annulus_plan_options options = ANNULUS_PLAN_OPTIONS_INIT;
  annulus_problem problem = float8_problem();
#define REFUSED(change, code, part)                                                          \
  do {                                                                                       \
    change;                                                                                  \
    CHECK_FAILS(annulus_plan_create(the_device, &problem, &options, &plan), (code), (part)); \
    problem = float8_problem();                                                              \
    options = (annulus_plan_options)ANNULUS_PLAN_OPTIONS_INIT;                               \
  } while (0)
  REFUSED(problem.scale_block_q = -64, ANNULUS_INVALID_ARGUMENT, "scale_blocks.q is -64");
  REFUSED(problem.scale_block_k = INT64_MIN, ANNULUS_INVALID_ARGUMENT, "scale_blocks.k is -9");
  REFUSED(problem.scale_block_v = 48, ANNULUS_INVALID_ARGUMENT, "scale_blocks.v is 48");
  REFUSED(problem.dtype_o = ANNULUS_FLOAT8_E4M3, ANNULUS_UNSUPPORTED, "take bf16 or fp16");
  REFUSED(options.kv_splits = INT32_MIN, ANNULUS_INVALID_ARGUMENT, "kv_splits is -2147483648");
  REFUSED(options.kv_splits = INT32_MAX, ANNULUS_UNSUPPORTED, "more than 2^24");
  REFUSED(options.max_multiprocessors = -1, ANNULUS_INVALID_ARGUMENT, "max_multiprocessors is -1");
  REFUSED(options.config = "wgmma m128 n128 w8 s2", ANNULUS_UNSUPPORTED, "elements of 16 bits");
  REFUSED(options.config = "wgmma8 m128 n128 w8 s2 c-2", ANNULUS_UNSUPPORTED, "1 or 2");
  REFUSED(options.has_strides = 1, ANNULUS_INVALID_ARGUMENT, "the strides of Q are 0, 0 and 0");
  REFUSED(options.has_strides = 1;
          options.broadcast_rows = 1, ANNULUS_UNSUPPORTED, "the row stride of Q is 0 elements");
#undef REFUSED
  CHECK(plan == NULL);
}

static void runs(void) {
  static const float scales[4] = {1, 1, 1, 1};
  static const float negative = -1;
  uint16_t o[kQueries * kColumns];
  size_t bytes = 0;
  annulus_plan* plan = NULL;
  annulus_plan_options options = ANNULUS_PLAN_OPTIONS_INIT;
  annulus_problem problem = float8_problem();
  annulus_operands given = ANNULUS_OPERANDS_INIT;
  annulus_operands operands = given;
  char* workspace = NULL;
  float* scale = filled(sizeof scales, 0);
  options.kv_splits = 2;
  CHECK_OK(annulus_plan_create(the_device, &problem, &options, &plan));
  CHECK_OK(annulus_plan_workspace_bytes(plan, &bytes));
  CHECK(bytes > 0);
  workspace = filled(bytes, 0xff);  // NaN
  CHECK_OK(annulus_device_copy_to_device(the_device, scale, scales, sizeof scales));
  given.q = filled(kQueries * kColumns, kOne);
  given.k = given.v = filled(kKeys * kColumns, kOne);
  given.o = filled(sizeof o, 0);
  given.q_strides.row = given.k_strides.row = given.v_strides.row = given.o_strides.row = kColumns;
  given.scale_q = given.scale_k = given.scale_v = scale;
#define REFUSED(change, room, part)                                                               \
  do {                                                                                            \
    operands = given;                                                                             \
    change;                                                                                       \
    CHECK_FAILS(annulus_plan_run(plan, NULL, &operands, room), ANNULUS_INVALID_ARGUMENT, (part)); \
  } while (0)
  REFUSED((void)0, NULL, "none was given");
  REFUSED((void)0, workspace + 8, "the workspace at");
  REFUSED(operands.scale_v = (const float*)((const char*)scale + 2), workspace, "scale_v at");
  REFUSED(operands.o = (void*)given.k, workspace, "O and K are both");
  REFUSED(operands.o = scale, workspace, "O and scale_q are both");
  REFUSED(operands.o_strides.row = 8, workspace, "would overlap");
#undef REFUSED
  CHECK_OK(annulus_plan_run(plan, NULL, &given, workspace));
  CHECK_OK(annulus_device_copy_to_host(the_device, o, given.o, sizeof o));
  CHECK(o[0] == 0x3f80 && o[kQueries * kColumns - 1] == 0x3f80);  // an average of ones
  // An invalid scale turns the rows that read it into NaN. Here it is the scale of the second block
  // of keys, which every query sees.
  CHECK_OK(annulus_device_copy_to_device(the_device, scale + 1, &negative, sizeof negative));
  CHECK_OK(annulus_plan_run(plan, NULL, &given, workspace));
  CHECK_OK(annulus_device_copy_to_host(the_device, o, given.o, sizeof o));
  CHECK((o[0] & 0x7fff) > 0x7f80 && (o[kQueries * kColumns - 1] & 0x7fff) > 0x7f80);
  CHECK_OK(annulus_plan_destroy(plan));
}

void test_float8(void) {
  annulus_device_options options = sample_options();
  options.name = "sim:sm_90a";
  CHECK_OK(annulus_device_open(&options, &the_device));
  refused_plans();
  runs();
  CHECK_OK(annulus_device_close(the_device));
}
