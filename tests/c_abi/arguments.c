// Values that C types permit but the library rejects: invalid enums, special numbers, strides,
// texts, arrays.

#define _POSIX_C_SOURCE 200112L  // declares setenv

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "annulus/c.h"
#include "c_abi/check.h"
#include "c_abi/sample.h"

static const sample* the_sample = NULL;

static void refused(const annulus_problem* problem, annulus_status code, const char* part) {
  annulus_plan* plan = NULL;
  CHECK_FAILS(annulus_plan_create(the_sample->device, problem, NULL, &plan), code, part);
  CHECK(plan == NULL);
  CHECK_FAILS(annulus_plan_prefetch(the_sample->device, problem, NULL), code, part);
}

static void wrong_problems(void) {
  annulus_problem problem = the_sample->problem;
#define REFUSED(field, value, code, part) \
  do {                                    \
    problem.field = (value);              \
    refused(&problem, (code), (part));    \
    problem = the_sample->problem;        \
  } while (0)
  REFUSED(dtype, 77, ANNULUS_INVALID_ARGUMENT, "dtype 77 (unknown");
  REFUSED(dtype, 0, ANNULUS_INVALID_ARGUMENT, "convert to fp16, bf16 or e4m3");
  REFUSED(dtype, INT32_MIN, ANNULUS_INVALID_ARGUMENT, "convert to fp16, bf16 or e4m3");
  REFUSED(lse_base, 0, ANNULUS_INVALID_ARGUMENT, "lse_base 0 is neither");
  REFUSED(lse_base, -5, ANNULUS_INVALID_ARGUMENT, "lse_base -5");
  REFUSED(want_lse, 2, ANNULUS_INVALID_ARGUMENT, "want_lse is 2; give 0 or 1");
  REFUSED(carry_in, -1, ANNULUS_INVALID_ARGUMENT, "carry_in is -1");
  REFUSED(carry_out, 9, ANNULUS_INVALID_ARGUMENT, "carry_out is 9");
  REFUSED(has_scale, 3, ANNULUS_INVALID_ARGUMENT, "has_scale is 3");
  REFUSED(has_q0, 3, ANNULUS_INVALID_ARGUMENT, "has_q0 is 3");
  REFUSED(has_k0, 3, ANNULUS_INVALID_ARGUMENT, "has_k0 is 3");
  REFUSED(has_total_k, 3, ANNULUS_INVALID_ARGUMENT, "has_total_k is 3");
  REFUSED(layer, -1, ANNULUS_INVALID_ARGUMENT, "layer is -1");
  REFUSED(dtype_o, 77, ANNULUS_UNSUPPORTED, "has no kernel; O has the dtype of Q, K and V");
  REFUSED(dtype, ANNULUS_FLOAT8_E4M3, ANNULUS_UNSUPPORTED, "e4m3 has head dims from 64 on");
  REFUSED(scale_block_k, 64, ANNULUS_INVALID_ARGUMENT, "operands have no scales");
  REFUSED(score, "alibi([1", ANNULUS_PARSE, "column 9");
  REFUSED(score, "scale(nan)", ANNULUS_INVALID_ARGUMENT, "scale is nan");
  REFUSED(heads, 0, ANNULUS_INVALID_ARGUMENT, "heads (H) is 0");
  REFUSED(kv_heads, 3, ANNULUS_INVALID_ARGUMENT, "4 query heads are not a multiple of 3");
  REFUSED(seq_q, -1, ANNULUS_INVALID_ARGUMENT, "seq_q (Sq) is -1");
  REFUSED(seq_k, INT64_MAX, ANNULUS_INVALID_ARGUMENT, "seq_k (Sk) is 9223372036854775807");
  REFUSED(dim_qk, 33, ANNULUS_UNSUPPORTED, "33/32");
  REFUSED(softcap, NAN, ANNULUS_INVALID_ARGUMENT, "softcap is nan");
  REFUSED(pattern, "cuasal", ANNULUS_PARSE, "column 1: unknown name 'cuasal'; did you mean");
  REFUSED(pattern, "", ANNULUS_PARSE, "the text ends");
  REFUSED(pattern, "topk(2)", ANNULUS_UNSUPPORTED, "not supported in this version");
  REFUSED(pattern, "blocks(\"/no/such/file\")", ANNULUS_FILE, "/no/such/file");
  REFUSED(pattern, "blocks()", ANNULUS_PARSE, "there is none");
#undef REFUSED
  problem.score = "softcap(3)";
  problem.softcap = 4;
  refused(&problem, ANNULUS_INVALID_ARGUMENT, "softcap is given by itself and in the score");
  problem = the_sample->problem;
  problem.has_scale = 1;
  problem.scale = NAN;
  refused(&problem, ANNULUS_INVALID_ARGUMENT, "scale is nan");
  problem.scale = HUGE_VAL;
  refused(&problem, ANNULUS_INVALID_ARGUMENT, "scale is inf");
  problem = the_sample->problem;
  problem.has_q0 = 1;
  problem.q0 = INT64_MIN;
  refused(&problem, ANNULUS_INVALID_ARGUMENT, "q0 is -9223372036854775808");
}

static void wrong_layouts(void) {
  const int64_t indptr[] = {0, 1, 3};
  const int32_t indices[] = {0, 0, 1};
  const int32_t unsorted[] = {0, 1, 0};
  const int32_t too_far[] = {0, 0, 1, 0};
  annulus_block_layout layout = ANNULUS_BLOCK_LAYOUT_INIT;
  annulus_problem problem = the_sample->problem;
  problem.layout = &layout;
  refused(&problem, ANNULUS_INVALID_ARGUMENT, "0 entries in indptr");
  layout.block_rows = layout.block_columns = 20;
  layout.seq_q = layout.seq_k = kRows;
  layout.indptr_count = 3;
  layout.indices_count = 3;
  refused(&problem, ANNULUS_INVALID_ARGUMENT, "indptr of the layout is null");
  layout.indptr = indptr;
  refused(&problem, ANNULUS_INVALID_ARGUMENT, "indices of the layout is null");
  layout.indices = unsorted;
  refused(&problem, ANNULUS_INVALID_ARGUMENT, "indices[2] = 0");
  layout.indices = indices;
  layout.indices_count = (size_t)1 << 62;
  refused(&problem, ANNULUS_INVALID_ARGUMENT, "should be indices_count");
  layout.indices_count = 3;
  layout.heads = 3;
  refused(&problem, ANNULUS_INVALID_ARGUMENT, "3 heads");
  layout.heads = 1;
  layout.head_map_count = kHeads;
  refused(&problem, ANNULUS_INVALID_ARGUMENT, "head_map of the layout is null");
  layout.head_map = too_far;
  refused(&problem, ANNULUS_INVALID_ARGUMENT, "head_map[2] is 1");
  layout.head_map_count = (size_t)1 << 62;
  refused(&problem, ANNULUS_INVALID_ARGUMENT, "4611686018427387904 entries");
  layout.head_map = NULL;
  layout.head_map_count = 0;
  layout.block_rows = 0;
  refused(&problem, ANNULUS_INVALID_ARGUMENT, "R is 0");
  layout.block_rows = 20;
  problem.pattern = "causal";
  refused(&problem, ANNULUS_INVALID_ARGUMENT, "does not use it");
}

static void wrong_operands(void) {
  annulus_plan* plan = NULL;
  annulus_operands operands = the_sample->operands;
  CHECK_OK(annulus_plan_create(the_sample->device, &the_sample->problem, NULL, &plan));
#define REFUSED(field, value, part)                                                               \
  do {                                                                                            \
    operands.field = (value);                                                                     \
    CHECK_FAILS(annulus_plan_run(plan, NULL, &operands, NULL), ANNULUS_INVALID_ARGUMENT, (part)); \
    operands = the_sample->operands;                                                              \
  } while (0)
  REFUSED(q, NULL, "Q is null");
  REFUSED(k, (const char*)operands.k + 8, "is not a multiple of 16 bytes");
  REFUSED(o, NULL, "O is null");
  REFUSED(lse, (float*)operands.o, "LSE is given although");
  REFUSED(q_strides.row, 12, "the row stride of Q is 12 elements");
  REFUSED(q_strides.row, 0, "give its strides");
  REFUSED(broadcast_rows, 2, "broadcast_rows is 2; give 0 or 1");
  REFUSED(k_strides.head, 36, "the head stride of K is 36");
  REFUSED(o_strides.row, 0, "would overlap");
  REFUSED(v_strides.row, INT64_MIN, "is beyond the address space");
  REFUSED(state_in.acc, (float*)operands.o, "nothing is carried in");
#undef REFUSED
  {  // strides that were not set
    const annulus_strides none = {0, 0, 0};
    operands.k_strides = operands.v_strides = none;
    CHECK_FAILS(annulus_plan_run(plan, NULL, &operands, NULL), ANNULUS_INVALID_ARGUMENT,
                "the strides of K are 0, 0 and 0");
    CHECK(strstr(annulus_last_error(), "broadcast_rows") != NULL);
    operands.broadcast_rows = 1;
    CHECK_OK(annulus_plan_run(plan, NULL, &operands, NULL));
    CHECK_OK(annulus_device_synchronize(the_sample->device));
  }
  CHECK_OK(annulus_plan_destroy(plan));
}

// Errors use the names of the C interface.
static void words_of_c(void) {
  annulus_problem problem = the_sample->problem;
  uint8_t seen = 0;
  annulus_pairs pairs = ANNULUS_PAIRS_INIT;
  pairs.q_count = pairs.k_count = 1;
  CHECK_FAILS(annulus_pattern_visible("batches(causal, dense)", NULL, &pairs, &seen),
              ANNULUS_INVALID_ARGUMENT, "needs the number of the batch");
  CHECK(strstr(annulus_last_error(), "::") == NULL);
  problem.dtype = 99;
  refused(&problem, ANNULUS_INVALID_ARGUMENT, "dtype 99");
  CHECK(strstr(annulus_last_error(), "dtype unknown") == NULL);
}

static void checked_operands(void) {
  annulus_device_options options = sample_options();
  annulus_device* device = NULL;
  annulus_plan* plan = NULL;
  annulus_operands operands = the_sample->operands;
  options.check_operands = 2;
  CHECK_FAILS(annulus_device_open(&options, &device), ANNULUS_INVALID_ARGUMENT,
              "check_operands is 2");
  options.check_operands = 1;
  CHECK_OK(annulus_device_open(&options, &device));
  CHECK_OK(annulus_plan_create(device, &the_sample->problem, NULL, &plan));
  CHECK_OK(annulus_plan_run(plan, NULL, &operands, NULL));
  operands.q = (const void*)(((uintptr_t)the_sample + 15) & ~(uintptr_t)15);
  CHECK_FAILS(annulus_plan_run(plan, NULL, &operands, NULL), ANNULUS_INVALID_ARGUMENT,
              "is not memory of the device");
  CHECK_OK(annulus_device_synchronize(device));
  CHECK_OK(annulus_plan_destroy(plan));
  CHECK_OK(annulus_device_close(device));
}

static void wrong_options(void) {
  annulus_device_options options = sample_options();
  annulus_plan_options plan_options = ANNULUS_PLAN_OPTIONS_INIT;
  annulus_device* device = NULL;
  annulus_plan* plan = NULL;
  options.name = "gpu:0";
  CHECK_FAILS(annulus_device_open(&options, &device), ANNULUS_INVALID_ARGUMENT,
              "write cuda, cuda:0");
  options.name = "sim:sm_80:99";
  CHECK_FAILS(annulus_device_open(&options, &device), ANNULUS_DEVICE, "there is no device");
  setenv("ANNULUS_REQUIRE_GPU", "1", 1);
  options.name = "sim:sm_80";
  CHECK_FAILS(annulus_device_open(&options, &device), ANNULUS_DEVICE, "ANNULUS_REQUIRE_GPU is '1'");
  unsetenv("ANNULUS_REQUIRE_GPU");
  options = sample_options();
  options.log_level = 4;
  CHECK_FAILS(annulus_device_open(&options, &device), ANNULUS_INVALID_ARGUMENT, "log_level is 4");
  options = sample_options();
  options.simulation_checked = 5;
  CHECK_FAILS(annulus_device_open(&options, &device), ANNULUS_INVALID_ARGUMENT,
              "simulation_checked is 5");
  options = sample_options();
  options.simulation_threads = -1;
  CHECK_FAILS(annulus_device_open(&options, &device), ANNULUS_INVALID_ARGUMENT,
              "simulation_threads is -1");
  options.simulation_threads = 1025;
  CHECK_FAILS(annulus_device_open(&options, &device), ANNULUS_INVALID_ARGUMENT,
              "1025 host threads");
  options = sample_options();
  options.template_dir = "/no/such/folder";
  CHECK_FAILS(annulus_device_open(&options, &device), ANNULUS_FILE, "/no/such/folder");
  CHECK(device == NULL);
  plan_options.config = "nonsense";
  CHECK_FAILS(annulus_plan_create(the_sample->device, &the_sample->problem, &plan_options, &plan),
              ANNULUS_INVALID_ARGUMENT, "'nonsense' is not a kernel configuration");
  plan_options.config = NULL;
  plan_options.block_rows = -3;
  CHECK_FAILS(annulus_plan_create(the_sample->device, &the_sample->problem, &plan_options, &plan),
              ANNULUS_INVALID_ARGUMENT, "blocks of -3 x 0");
  CHECK(plan == NULL);
}

void test_arguments(void) {
  annulus_device* device = sample_open();
  sample* made = malloc(sizeof *made);
  sample_make(made, device);
  the_sample = made;
  wrong_problems();
  wrong_layouts();
  wrong_operands();
  wrong_options();
  words_of_c();
  checked_operands();
  CHECK_OK(annulus_device_close(device));
  free(made);
}
