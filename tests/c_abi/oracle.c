// Answers compared with the oracle, and states that are merged and finished on the host.

#include <annulus/c_tools.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "c_abi/check.h"
#include "c_abi/sample.h"

enum { kAllRows = kHeads * kRows, kQuery = kRows * kHeads * kDim, kKey = kRows * kKvHeads * kDim };

// The tensors of a sample in host memory as bits, and an answer.
typedef struct host {
  const sample* made;
  annulus_problem problem;
  uint16_t q[kQuery];
  uint16_t k[kKey];
  uint16_t v[kKey];
  uint16_t o[kQuery];
  float lse[kAllRows];
  annulus_host_inputs inputs;
  annulus_host_result result;
} host;

static void download(const sample* made, void* to, const void* from, size_t bytes) {
  CHECK_OK(annulus_device_copy_to_host(made->device, to, from, bytes));
}

static void prepare(host* of, const sample* made) {
  const annulus_host_inputs inputs = ANNULUS_HOST_INPUTS_INIT;
  const annulus_host_result result = ANNULUS_HOST_RESULT_INIT;
  annulus_operands operands = made->operands;
  annulus_plan* plan = NULL;
  void* lse = NULL;
  of->made = made;
  of->problem = made->problem;
  of->problem.pattern = "causal";
  of->problem.want_lse = 1;
  CHECK_OK(annulus_device_allocate(made->device, sizeof of->lse, &lse));
  operands.lse = lse;
  CHECK_OK(annulus_plan_create(made->device, &of->problem, NULL, &plan));
  CHECK_OK(annulus_plan_run(plan, NULL, &operands, NULL));
  CHECK_OK(annulus_plan_destroy(plan));
  download(made, of->q, operands.q, sizeof of->q);
  download(made, of->k, operands.k, sizeof of->k);
  download(made, of->v, operands.v, sizeof of->v);
  download(made, of->o, operands.o, sizeof of->o);
  download(made, of->lse, lse, sizeof of->lse);
  of->inputs = inputs;
  of->inputs.q = of->q;
  of->inputs.k = of->k;
  of->inputs.v = of->v;
  of->inputs.q_strides = operands.q_strides;
  of->inputs.k_strides = of->inputs.v_strides = operands.k_strides;
  of->result = result;
  of->result.o = of->o;
  of->result.o_strides = operands.o_strides;
  of->result.lse = of->lse;
}

static void progress(void* user, double share) {
  double* told = user;
  if (share > *told) *told = share;
}

static void compares(host* of) {
  annulus_reference_options options = ANNULUS_REFERENCE_OPTIONS_INIT;
  annulus_comparison made = ANNULUS_COMPARISON_INIT;
  annulus_tolerance tolerance = ANNULUS_TOLERANCE_INIT;
  annulus_reference_rows rows = ANNULUS_REFERENCE_ROWS_INIT;
  annulus_reference* reference = NULL;
  uint8_t excused[kAllRows] = {0};
  double told = 0;
  options.threads = 2;
  options.progress = progress;
  options.progress_user = &told;
  CHECK_OK(annulus_reference_create(&of->problem, &of->inputs, &options, &reference));
  CHECK(told == 1);
  CHECK_OK(annulus_reference_get(reference, &rows));
  CHECK(rows.count == kAllRows && rows.dim_v == kDim && rows.sampled == 0);
  CHECK(rows.rows[kAllRows - 1] == kAllRows - 1 && rows.l[0] == 1 && rows.tainted[0] == 0);
  CHECK(fabs(rows.o[0] - (double)of->made->v[0]) < 1e-12);  // the first row sees one key
  CHECK_OK(annulus_reference_compare(reference, &of->result, &made));
  CHECK(made.within_tolerance == 1 && made.checked_rows == kAllRows && made.wrong_rows == 0);
  CHECK(made.first_wrong[0] == 0);
  CHECK_OK(annulus_tolerance_get(ANNULUS_BFLOAT16, &tolerance));
  CHECK(made.error_row_max > 0 && made.error_row_max <= tolerance.row);
  CHECK(made.error_o <= tolerance.frobenius && made.error_lse <= tolerance.lse);
  of->o[(9 * kHeads + 2) * kDim + 5] ^= 0x4000;
  CHECK_OK(annulus_reference_compare(reference, &of->result, &made));
  CHECK(made.within_tolerance == 0 && made.wrong_rows == 1);
  CHECK(strstr(made.first_wrong, "head 2 row 9:") != NULL);
  excused[2 * kRows + 9] = 1;
  of->result.excused = excused;
  CHECK_OK(annulus_reference_compare(reference, &of->result, &made));
  CHECK(made.within_tolerance == 1 && made.checked_rows == kAllRows - 1);
  of->result.excused = NULL;
  of->o[(9 * kHeads + 2) * kDim + 5] ^= 0x4000;
  CHECK_OK(annulus_reference_destroy(reference));
  CHECK_FAILS(annulus_reference_get(reference, &rows), ANNULUS_INVALID_ARGUMENT,
              "the reference was given back");
}

static void samples(host* of) {
  annulus_reference_options options = ANNULUS_REFERENCE_OPTIONS_INIT;
  annulus_reference_rows rows = ANNULUS_REFERENCE_ROWS_INIT;
  annulus_comparison made = ANNULUS_COMPARISON_INIT;
  annulus_reference* reference = NULL;
  options.max_pairs = 1000;
  options.tile_rows = 4;
  options.sampled_rows = 3;
  CHECK_OK(annulus_reference_create(&of->problem, &of->inputs, &options, &reference));
  CHECK_OK(annulus_reference_get(reference, &rows));
  CHECK(rows.sampled == 1 && rows.count == kHeads * (8 + 3));
  CHECK_OK(annulus_reference_compare(reference, &of->result, &made));
  CHECK(made.within_tolerance == 1 && made.checked_rows == rows.count);
  CHECK_OK(annulus_reference_destroy(reference));
}

static void reached(host* of) {
  uint8_t rows[kAllRows];
  memset(rows, 7, sizeof rows);
  CHECK_OK(annulus_problem_reached_rows(&of->problem, &of->inputs, 16, 16, rows));
  CHECK(rows[0] == 0 && rows[kAllRows - 1] == 0);
  of->k[35 * kKvHeads * kDim] = 0x7fc0;
  CHECK_OK(annulus_problem_reached_rows(&of->problem, &of->inputs, 16, 16, rows));
  CHECK(rows[0] == 0 && rows[kRows - 1] == 1 && rows[2 * kRows + kRows - 1] == 0);
  CHECK_FAILS(annulus_problem_reached_rows(&of->problem, &of->inputs, 0, 16, rows),
              ANNULUS_INVALID_ARGUMENT, "tiles of 0 x 16");
  CHECK_FAILS(annulus_problem_reached_rows(&of->problem, &of->inputs, 16, 16, NULL),
              ANNULUS_INVALID_ARGUMENT, "reached is null");
  download(of->made, of->k, of->made->operands.k, sizeof of->k);
}

static void refused(host* of) {
  annulus_reference_options options = ANNULUS_REFERENCE_OPTIONS_INIT;
  annulus_host_inputs inputs = of->inputs;
  annulus_host_result result = ANNULUS_HOST_RESULT_INIT;
  annulus_problem problem = of->problem;
  annulus_comparison made = ANNULUS_COMPARISON_INIT;
  annulus_tolerance tolerance = ANNULUS_TOLERANCE_INIT;
  annulus_reference* reference = NULL;
  annulus_reference* none = NULL;
  inputs.k = NULL;
  CHECK_FAILS(annulus_reference_create(&problem, &inputs, NULL, &none), ANNULUS_INVALID_ARGUMENT,
              "K of the oracle is null");
  inputs.struct_size = 4;
  CHECK_FAILS(annulus_reference_create(&problem, &inputs, NULL, &none), ANNULUS_INVALID_ARGUMENT,
              "struct_size of annulus_host_inputs is 4");
  options.threads = -1;
  CHECK_FAILS(annulus_reference_create(&problem, &of->inputs, &options, &none),
              ANNULUS_INVALID_ARGUMENT, "-1 threads");
  options.threads = 0;
  options.max_pairs = -1;
  CHECK_FAILS(annulus_reference_create(&problem, &of->inputs, &options, &none),
              ANNULUS_INVALID_ARGUMENT, "max_pairs -1");
  problem.heads = 0;
  CHECK_FAILS(annulus_reference_create(&problem, &of->inputs, NULL, &none),
              ANNULUS_INVALID_ARGUMENT, "heads (H) is 0");
  CHECK(none == NULL);
  CHECK_OK(annulus_reference_create(&of->problem, &of->inputs, NULL, &reference));
  CHECK_FAILS(annulus_reference_compare(reference, &result, &made), ANNULUS_INVALID_ARGUMENT,
              "neither O nor a state");
  CHECK_FAILS(annulus_reference_compare(reference, NULL, &made), ANNULUS_INVALID_ARGUMENT,
              "annulus_host_result is null");
  CHECK_FAILS(annulus_reference_compare(reference, &of->result, NULL), ANNULUS_INVALID_ARGUMENT,
              "annulus_comparison is null");
  CHECK_OK(annulus_reference_destroy(reference));
  CHECK_FAILS(annulus_tolerance_get(99, &tolerance), ANNULUS_INVALID_ARGUMENT, "dtype is 99");
}

// Two rows of two values. Both states have seen keys of the first row, and only `b` has seen keys
// of the second.
static void states(void) {
  float acc_a[] = {1, 2, 0, 0};
  float m_a[] = {3, -HUGE_VALF};
  float l_a[] = {1, 0};
  float acc_b[] = {4, 0, 6, 8};
  float m_b[] = {2, 1};
  float l_b[] = {2, 2};
  float o[4];
  float lse[2];
  annulus_host_state a = ANNULUS_HOST_STATE_INIT;
  annulus_host_state b = ANNULUS_HOST_STATE_INIT;
  a.rows = b.rows = 2;
  a.dim_v = b.dim_v = 2;
  a.acc = acc_a, a.m = m_a, a.l = l_a;
  b.acc = acc_b, b.m = m_b, b.l = l_b;
  CHECK_OK(annulus_state_merge(&a, &b, &a));
  CHECK(m_a[0] == 3 && l_a[0] == 2 && acc_a[0] == 3 && acc_a[1] == 2);
  CHECK(m_a[1] == 1 && l_a[1] == 2 && acc_a[2] == 6 && acc_a[3] == 8);
  CHECK_OK(annulus_state_finish(&a, ANNULUS_LSE_TWO, o, lse));
  CHECK(o[0] == 1.5f && o[1] == 1 && o[2] == 3 && o[3] == 4 && lse[0] == 4 && lse[1] == 2);
  CHECK_OK(annulus_state_finish(&a, ANNULUS_LSE_NATURAL, o, lse));
  CHECK(fabs((double)lse[0] - 4 * log(2)) < 1e-6);
  CHECK_OK(annulus_state_clear(&b));
  CHECK(l_b[0] == 0 && l_b[1] == 0 && m_b[0] == -HUGE_VALF && acc_b[3] == 0);
  CHECK_OK(annulus_state_finish(&b, ANNULUS_LSE_NATURAL, o, lse));
  CHECK(o[0] == 0 && lse[1] == -HUGE_VALF);
  b.version = 2;
  CHECK_FAILS(annulus_state_merge(&a, &b, &a), ANNULUS_INVALID_ARGUMENT, "state b has version 2");
  b.version = ANNULUS_STATE_VERSION;
  b.rows = 1;
  CHECK_FAILS(annulus_state_merge(&a, &b, &a), ANNULUS_INVALID_ARGUMENT, "do not merge");
  CHECK_FAILS(annulus_state_merge(&a, &a, &b), ANNULUS_INVALID_ARGUMENT, "does not fit");
  b.rows = -1;
  CHECK_FAILS(annulus_state_clear(&b), ANNULUS_INVALID_ARGUMENT, "-1 rows of 2");
  b.rows = INT64_MAX;
  CHECK_FAILS(annulus_state_finish(&b, ANNULUS_LSE_TWO, o, lse), ANNULUS_INVALID_ARGUMENT,
              "give 0 rows or more");
  b.rows = 2;
  b.l = NULL;
  CHECK_FAILS(annulus_state_clear(&b), ANNULUS_INVALID_ARGUMENT, "l of a state is null");
  CHECK_FAILS(annulus_state_clear(NULL), ANNULUS_INVALID_ARGUMENT, "annulus_host_state is null");
  CHECK_FAILS(annulus_state_finish(&a, 7, o, lse), ANNULUS_INVALID_ARGUMENT, "lse_base is 7");
  CHECK_FAILS(annulus_state_finish(&a, ANNULUS_LSE_TWO, NULL, lse), ANNULUS_INVALID_ARGUMENT,
              "o is null");
}

// A run's state after the first half of the keys, compared with the oracle.
static void carried(host* of) {
  annulus_problem problem = of->problem;
  annulus_host_state state = ANNULUS_HOST_STATE_INIT;
  annulus_host_result result = ANNULUS_HOST_RESULT_INIT;
  annulus_comparison made = ANNULUS_COMPARISON_INIT;
  annulus_operands operands = of->made->operands;
  annulus_reference* reference = NULL;
  annulus_plan* plan = NULL;
  void* memory[3] = {NULL, NULL, NULL};
  problem.want_lse = 0;
  problem.carry_out = 1;
  state.rows = kAllRows;
  state.dim_v = kDim;
  state.acc = malloc(kAllRows * kDim * 4);
  state.m = malloc(kAllRows * 4);
  state.l = malloc(kAllRows * 4);
  CHECK_OK(annulus_device_allocate(of->made->device, kAllRows * kDim * 4, &memory[0]));
  CHECK_OK(annulus_device_allocate(of->made->device, kAllRows * 4, &memory[1]));
  CHECK_OK(annulus_device_allocate(of->made->device, kAllRows * 4, &memory[2]));
  operands.o = NULL;
  operands.state_out.acc = memory[0];
  operands.state_out.m = memory[1];
  operands.state_out.l = memory[2];
  CHECK_OK(annulus_plan_create(of->made->device, &problem, NULL, &plan));
  CHECK_OK(annulus_plan_run(plan, NULL, &operands, NULL));
  CHECK_OK(annulus_plan_destroy(plan));
  download(of->made, state.acc, memory[0], kAllRows * kDim * 4);
  download(of->made, state.m, memory[1], kAllRows * 4);
  download(of->made, state.l, memory[2], kAllRows * 4);
  result.state = &state;
  CHECK_OK(annulus_reference_create(&problem, &of->inputs, NULL, &reference));
  CHECK_OK(annulus_reference_compare(reference, &result, &made));
  CHECK(made.within_tolerance == 1 && made.checked_rows == kAllRows);
  state.l[77] *= 2;
  CHECK_OK(annulus_reference_compare(reference, &result, &made));
  CHECK(made.within_tolerance == 0 && made.wrong_rows == 1);
  CHECK_OK(annulus_reference_destroy(reference));
  // The state is the input of a run without further keys, whose O is the same.
  state.l[77] /= 2;
  problem = of->problem;
  problem.carry_in = 1;
  problem.pattern = "~dense";
  of->inputs.state_in = &state;
  CHECK_OK(annulus_reference_create(&problem, &of->inputs, NULL, &reference));
  CHECK_OK(annulus_reference_compare(reference, &of->result, &made));
  CHECK(made.within_tolerance == 1 && made.checked_rows == kAllRows);
  CHECK_OK(annulus_reference_destroy(reference));
  of->inputs.state_in = NULL;
  free(state.acc);
  free(state.m);
  free(state.l);
}

void test_oracle(void) {
  annulus_device* device = sample_open();
  sample* made = malloc(sizeof *made);
  host* of = malloc(sizeof *of);
  sample_make(made, device);
  prepare(of, made);
  compares(of);
  samples(of);
  reached(of);
  refused(of);
  states();
  carried(of);
  CHECK_OK(annulus_device_close(device));
  free(of);
  free(made);
}
