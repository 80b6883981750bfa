// Answers for patterns as text and as arrays, LSE, a carried state, and O over Q.

#include <annulus/c.h>
#include <stdlib.h>
#include <string.h>

#include "c_abi/check.h"
#include "c_abi/sample.h"

static int window(int q, int k) { return k <= q && (q - k <= 7 || k < 3); }

// Blocks of 10 x 8. Each row of blocks keeps the column blocks (row + 1) % 5 and 4.
static int block_kept(int q, int k) { return k / 8 == (q / 10 + 1) % 5 || k / 8 == 4; }
static int block_and_causal(int q, int k) { return q == k || (k <= q && block_kept(q, k)); }

static double run(const sample* made, const annulus_problem* problem,
                  const annulus_operands* operands, sample_visible visible, const float* lse) {
  annulus_plan* plan = NULL;
  double error = 0;
  CHECK_OK(annulus_plan_create(made->device, problem, NULL, &plan));
  CHECK_OK(annulus_plan_run(plan, NULL, operands, NULL));
  error = sample_error(made, visible, lse);
  CHECK_OK(annulus_plan_destroy(plan));
  return error;
}

static void patterns(const sample* made) {
  annulus_problem problem = made->problem;
  annulus_operands operands = made->operands;
  float* lse = malloc(kHeads * kRows * sizeof *lse);
  void* device_lse = NULL;
  annulus_plan* plan = NULL;
  problem.pattern = "causal & (window(7,0) | sink(3))";
  problem.want_lse = 1;
  CHECK_OK(annulus_device_allocate(made->device, kHeads * kRows * sizeof *lse, &device_lse));
  operands.lse = device_lse;
  CHECK_OK(annulus_plan_create(made->device, &problem, NULL, &plan));
  CHECK_OK(annulus_plan_run(plan, NULL, &operands, NULL));
  CHECK_OK(annulus_device_synchronize(made->device));
  CHECK_OK(
      annulus_device_copy_to_host(made->device, lse, device_lse, kHeads * kRows * sizeof *lse));
  CHECK(sample_error(made, window, lse) < 1e-2);
  CHECK(sample_error(made, sample_causal, lse) > 1e-2);  // otherwise the test would prove nothing
  CHECK_OK(annulus_plan_destroy(plan));
  CHECK_OK(annulus_device_release(made->device, device_lse));
  free(lse);
}

static void layouts(const sample* made) {
  const int64_t indptr[] = {0, 2, 4, 6, 7};
  const int32_t indices[] = {1, 4, 2, 4, 3, 4, 4};
  annulus_block_layout layout = ANNULUS_BLOCK_LAYOUT_INIT;
  annulus_problem problem = made->problem;
  layout.block_rows = 10;
  layout.block_columns = 8;
  layout.seq_q = layout.seq_k = kRows;
  layout.indptr = indptr;
  layout.indptr_count = 5;
  layout.indices = indices;
  layout.indices_count = 7;
  problem.layout = &layout;
  sample_clear(made);
  CHECK(run(made, &problem, &made->operands, block_kept, NULL) < 1e-2);
  problem.pattern = "causal & blocks() | window(0,0)";
  sample_clear(made);
  CHECK(run(made, &problem, &made->operands, block_and_causal, NULL) < 1e-2);
  layout.seq_q = layout.seq_k = kRows - 1;
  CHECK_FAILS(annulus_problem_validate(&problem, NULL), ANNULUS_INVALID_ARGUMENT, "hide_outside");
  problem.pattern = "causal & blocks(hide_outside) | window(0,0)";
  CHECK_OK(annulus_problem_validate(&problem, NULL));
}

// Blocks of 20 x 16. The first distinct head keeps the diagonal, and the second keeps the last
// column.
static int near_kept(int q, int k) { return k / 16 == q / 20; }
static int last_kept(int q, int k) { return q >= 0 && k / 16 == 2; }

// Query heads share distinct heads in any order, across groups that share K and V.
static void head_map(const sample* made) {
  const int64_t indptr[] = {0, 1, 2, 3, 4};
  const int32_t indices[] = {0, 1, 2, 2};
  const int32_t map[] = {1, 0, 0, 1};
  annulus_block_layout layout = ANNULUS_BLOCK_LAYOUT_INIT;
  annulus_problem problem = made->problem;
  int head = 0;
  layout.block_rows = 20;
  layout.block_columns = 16;
  layout.seq_q = layout.seq_k = kRows;
  layout.heads = 2;
  layout.indptr = indptr;
  layout.indptr_count = 5;
  layout.indices = indices;
  layout.indices_count = 4;
  layout.head_map = map;
  layout.head_map_count = kHeads;
  problem.layout = &layout;
  sample_clear(made);
  CHECK_OK(annulus_plan_prefetch(made->device, &problem, NULL));
  run(made, &problem, &made->operands, sample_all, NULL);
  for (head = 0; head < kHeads; ++head) {
    CHECK(sample_head_error(made, head, map[head] == 0 ? near_kept : last_kept) < 1e-2);
    CHECK(sample_head_error(made, head, map[head] == 0 ? last_kept : near_kept) > 1e-2);
  }
}

// The keys in two halves. The second run starts from the state of the first.
static void carried_state(const sample* made) {
  const int half = kRows / 2;
  annulus_problem problem = made->problem;
  annulus_operands operands = made->operands;
  annulus_plan* first = NULL;
  annulus_plan* second = NULL;
  void* acc = NULL;
  void* m = NULL;
  void* l = NULL;
  CHECK_OK(annulus_device_allocate(made->device, kHeads * kRows * kDim * 4, &acc));
  CHECK_OK(annulus_device_allocate(made->device, kHeads * kRows * 4, &m));
  CHECK_OK(annulus_device_allocate(made->device, kHeads * kRows * 4, &l));
  problem.pattern = "causal";
  problem.seq_k = half;
  problem.has_q0 = problem.has_k0 = 1;
  problem.carry_out = 1;
  CHECK_OK(annulus_plan_create(made->device, &problem, NULL, &first));
  problem.k0 = half;
  problem.carry_in = 1;
  problem.carry_out = 0;
  CHECK_OK(annulus_plan_create(made->device, &problem, NULL, &second));
  sample_clear(made);
  operands.o = NULL;
  operands.state_out.acc = acc;
  operands.state_out.m = m;
  operands.state_out.l = l;
  CHECK_OK(annulus_plan_run(first, NULL, &operands, NULL));
  operands.state_in = operands.state_out;
  operands.state_out = made->operands.state_out;
  operands.o = made->operands.o;
  operands.k = (const char*)operands.k + half * kKvHeads * kDim * 2;
  operands.v = (const char*)operands.v + half * kKvHeads * kDim * 2;
  CHECK_OK(annulus_plan_run(second, NULL, &operands, NULL));
  CHECK(sample_error(made, sample_causal, NULL) < 1e-2);
  CHECK_OK(annulus_plan_destroy(first));
  CHECK_OK(annulus_plan_destroy(second));
}

static void in_place(const sample* made) {
  annulus_operands operands = made->operands;
  annulus_problem problem = made->problem;
  problem.pattern = "causal";
  operands.q = operands.o;
  // Copies Q into the memory of O.
  {
    const size_t bytes = kRows * kHeads * kDim * 2;
    void* q = malloc(bytes);
    CHECK_OK(annulus_device_copy_to_host(made->device, q, made->operands.q, bytes));
    CHECK_OK(annulus_device_copy_to_device(made->device, operands.o, q, bytes));
    free(q);
  }
  CHECK(run(made, &problem, &operands, sample_causal, NULL) < 1e-2);
}

static void nothing_to_do(const sample* made) {
  annulus_problem problem = made->problem;
  const annulus_operands operands = ANNULUS_OPERANDS_INIT;
  annulus_plan_info info = ANNULUS_PLAN_INFO_INIT;
  annulus_plan* plan = NULL;
  problem.batch = 0;
  CHECK_OK(annulus_plan_create(made->device, &problem, NULL, &plan));
  CHECK_OK(annulus_plan_get_info(plan, &info));
  CHECK(info.launches == 0);
  CHECK_OK(annulus_plan_run(plan, NULL, &operands, NULL));
  CHECK_OK(annulus_plan_destroy(plan));
}

// A bound call gives the same answer as a run, and stays valid after its plan is destroyed.
static void bound(sample* made) {
  annulus_problem problem = made->problem;
  annulus_operands wrong = made->operands;
  annulus_plan* plan = NULL;
  annulus_bound* call = NULL;
  uint16_t expected[64], got[64];
  problem.pattern = "causal";
  CHECK_OK(annulus_plan_create(made->device, &problem, NULL, &plan));
  CHECK_OK(annulus_plan_run(plan, NULL, &made->operands, NULL));
  CHECK_OK(annulus_device_copy_to_host(made->device, expected, made->operands.o, sizeof expected));
  wrong.k = NULL;
  CHECK_FAILS(annulus_plan_bind(plan, &wrong, NULL, &call), ANNULUS_INVALID_ARGUMENT, "K is null");
  CHECK_FAILS(annulus_plan_bind(plan, &made->operands, NULL, NULL), ANNULUS_INVALID_ARGUMENT,
              "bound");
  CHECK(call == NULL);
  CHECK_OK(annulus_plan_bind(plan, &made->operands, NULL, &call));
  CHECK_OK(annulus_plan_destroy(plan));
  memset(got, 0x7f, sizeof got);
  CHECK_OK(annulus_device_copy_to_device(made->device, made->operands.o, got, sizeof got));
  CHECK_OK(annulus_bound_run(call, NULL));
  CHECK_OK(annulus_device_copy_to_host(made->device, got, made->operands.o, sizeof got));
  CHECK(memcmp(got, expected, sizeof got) == 0);
  CHECK_FAILS(annulus_bound_run((annulus_bound*)plan, NULL), ANNULUS_INVALID_ARGUMENT,
              "is not a handle of type bound call");
  CHECK_OK(annulus_bound_destroy(call));
  CHECK_FAILS(annulus_bound_run(call, NULL), ANNULUS_INVALID_ARGUMENT, "given back");
  CHECK_FAILS(annulus_bound_destroy(NULL), ANNULUS_INVALID_ARGUMENT, "null");
}

// A kernel reads an invalid address. The device is lost, which a code reports, and it can still be
// closed.
static void fault(void) {
  annulus_device_options options = sample_options();
  annulus_device_info info = ANNULUS_DEVICE_INFO_INIT;
  annulus_device* device = NULL;
  annulus_plan* plan = NULL;
  sample* made = malloc(sizeof *made);
  options.name = "sim:sm_80:7";
  CHECK_OK(annulus_device_open(&options, &device));
  sample_make(made, device);
  CHECK_OK(annulus_plan_create(device, &made->problem, NULL, &plan));
  made->operands.k = (void*)(uintptr_t)0x1000;
  CHECK_OK(annulus_plan_run(plan, NULL, &made->operands, NULL));
  CHECK_FAILS(annulus_device_synchronize(device), ANNULUS_FAULT, "mma_forward");
  CHECK_FAILS(annulus_device_synchronize(device), ANNULUS_FAULT, "");
  CHECK_OK(annulus_device_get_info(device, &info));
  CHECK_OK(annulus_plan_destroy(plan));
  CHECK_OK(annulus_device_close(device));
  free(made);
}

void test_attention(void) {
  annulus_device* device = sample_open();
  sample* made = malloc(sizeof *made);
  sample_make(made, device);
  patterns(made);
  layouts(made);
  head_map(made);
  carried_state(made);
  in_place(made);
  nothing_to_do(made);
  bound(made);
  fault();
  CHECK_OK(annulus_device_close(device));
  free(made);
}
