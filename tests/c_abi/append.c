// Appending: rows that go to slots and to the keys of requests, a rotation by a quarter turn with
// tables, and rejected input.

#include <annulus/c_batch.h>
#include <stdlib.h>
#include <string.h>

#include "c_abi/check.h"
#include "c_abi/sample.h"

enum {
  kPageRows = 8,
  kPages = kRows / kPageRows,
  kQueryCount = kRows * kHeads * kDim,
  kKeyCount = kRows * kKvHeads * kDim,
  kLeftOut = 3  // the row without a slot
};

typedef struct sample_append {
  const sample* made;
  annulus_append_problem problem;
  annulus_append_plan* plan;
  annulus_append_operands operands;
} sample_append;

static void* put(const sample* made, const void* data, size_t bytes) {
  void* memory = NULL;
  CHECK_OK(annulus_device_allocate(made->device, bytes, &memory));
  CHECK_OK(annulus_device_copy_to_device(made->device, memory, data, bytes));
  return memory;
}

static void clear(const sample_append* append) {
  uint16_t* zeros = calloc(kKeyCount, sizeof *zeros);
  annulus_device* device = append->made->device;
  CHECK_OK(annulus_device_copy_to_device(device, append->operands.k, zeros, kKeyCount * 2));
  CHECK_OK(annulus_device_copy_to_device(device, append->operands.v, zeros, kKeyCount * 2));
  free(zeros);
}

// The page of each row. The pages lie in the order 4, 3, 2, 1, 0.
static int slot_of(int row) { return (kPages - 1 - row / kPageRows) * kPageRows + row % kPageRows; }

static void make(sample_append* append, const sample* made) {
  const annulus_append_problem problem = ANNULUS_APPEND_PROBLEM_INIT;
  const annulus_append_operands operands = ANNULUS_APPEND_OPERANDS_INIT;
  const annulus_row_strides q_rows = {kHeads * kDim, kDim};
  const annulus_row_strides k_rows = {kKvHeads * kDim, kDim};
  const annulus_batch_strides pages = {kPageRows * kKvHeads * kDim, kKvHeads * kDim, kDim};
  int64_t slots[kRows], positions[kRows];
  float tables[2 * kDim];
  void* memory = NULL;
  int i = 0;
  for (i = 0; i < kRows; ++i) {
    slots[i] = i == kLeftOut ? -1 : slot_of(i);
    positions[i] = i % 2;
  }
  // Position 0 is not rotated, and position 1 is rotated by a quarter turn.
  for (i = 0; i < kDim / 2; ++i) {
    tables[i] = tables[kDim + kDim / 2 + i] = 1.0f;
    tables[kDim / 2 + i] = tables[kDim + i] = 0.0f;
  }
  memset(append, 0, sizeof *append);
  append->made = made;
  append->problem = problem;
  append->problem.heads = kHeads;
  append->problem.kv_heads = kKvHeads;
  append->problem.dim_qk = append->problem.dim_v = kDim;
  append->problem.most.rows = kRows;
  append->problem.page_rows = kPageRows;
  append->problem.rotary_order = ANNULUS_ROTARY_HALVES;
  append->problem.table_dtype = ANNULUS_FLOAT32;
  CHECK_OK(annulus_append_problem_validate(&append->problem));
  CHECK_OK(annulus_append_plan_create(made->device, &append->problem, &append->plan));

  append->operands = operands;
  append->operands.q = made->operands.q;
  append->operands.rotated_q = made->operands.o;
  append->operands.new_k = made->operands.k;
  append->operands.new_v = made->operands.v;
  append->operands.q_strides = append->operands.rotated_q_strides = q_rows;
  append->operands.new_k_strides = append->operands.new_v_strides = k_rows;
  CHECK_OK(annulus_device_allocate(made->device, kKeyCount * 2, &append->operands.k));
  CHECK_OK(annulus_device_allocate(made->device, kKeyCount * 2, &append->operands.v));
  append->operands.k_strides = append->operands.v_strides = pages;
  append->operands.k_pages = append->operands.v_pages = kPages;
  append->operands.slots = put(made, slots, sizeof slots);
  append->operands.positions = put(made, positions, sizeof positions);
  append->operands.cosines = put(made, tables, sizeof tables);
  append->operands.sines = (const float*)append->operands.cosines + kDim / 2;
  append->operands.table_stride = kDim;
  append->operands.table_rows = 2;
  CHECK_OK(annulus_device_allocate(made->device, sizeof(uint32_t), &memory));
  append->operands.status = memory;
  CHECK_OK(annulus_append_plan_clear_status(append->plan, NULL, append->operands.status));
  clear(append);
}

static uint16_t bits_of(float value) {
  uint32_t bits = 0;
  memcpy(&bits, &value, sizeof bits);
  return (uint16_t)(bits >> 16);
}

// The number of elements of `count` heads that differ from row `row` of `given`, rotated by a
// quarter turn or not. A negative row stands for zeros.
static int differences(const uint16_t* got, const float* given, int row, int count, int turned) {
  int differ = 0, h = 0, d = 0;
  for (h = 0; h < count; ++h) {
    for (d = 0; d < kDim; ++d) {
      const float* head = row < 0 ? NULL : given + (row * count + h) * kDim;
      const float value = row < 0        ? 0.0f
                          : !turned      ? head[d]
                          : d < kDim / 2 ? -head[d + kDim / 2]
                                         : head[d - kDim / 2];
      differ += got[h * kDim + d] != bits_of(value);
    }
  }
  return differ;
}

static void check_memory(const sample_append* append, int rotated, int left_out) {
  const sample* made = append->made;
  uint16_t* q = malloc(kQueryCount * 2);
  uint16_t* k = malloc(kKeyCount * 2);
  uint16_t* v = malloc(kKeyCount * 2);
  int row = 0, differ = 0;
  CHECK_OK(annulus_device_copy_to_host(made->device, q, made->operands.o, kQueryCount * 2));
  CHECK_OK(annulus_device_copy_to_host(made->device, k, append->operands.k, kKeyCount * 2));
  CHECK_OK(annulus_device_copy_to_host(made->device, v, append->operands.v, kKeyCount * 2));
  for (row = 0; row < kRows; ++row) {
    const int turned = rotated && row % 2 == 1;
    const int from = row == left_out ? -1 : row;
    const int at = slot_of(row) * kKvHeads * kDim;
    if (rotated) differ += differences(q + row * kHeads * kDim, made->q, row, kHeads, turned);
    differ += differences(k + at, made->k, from, kKvHeads, turned);
    differ += differences(v + at, made->v, from, kKvHeads, 0);
  }
  CHECK(differ == 0);
  free(q);
  free(k);
  free(v);
}

static void check_status_is(const sample_append* append, int64_t rule, int64_t row) {
  annulus_append_status status = ANNULUS_APPEND_STATUS_INIT;
  CHECK_OK(annulus_append_plan_get_status(append->plan, append->operands.status, &status));
  CHECK(status.rule == rule && status.row == row);
}

static void by_slots(const sample_append* append) {
  annulus_append_plan_info info = ANNULUS_APPEND_PLAN_INFO_INIT;
  CHECK_OK(annulus_append_plan_get_info(append->plan, &info));
  CHECK(strstr(info.specialised_source, "append_rows") != NULL);
  CHECK(info.rotary_dims == kDim && info.threads >= 32 && info.compile_ms > 0);
  CHECK(info.registers > 0);
  CHECK(info.device_bytes == 0);
  CHECK_OK(annulus_append_plan_run(append->plan, NULL, &append->operands));
  check_memory(append, 1, kLeftOut);
  check_status_is(append, ANNULUS_APPEND_RULE_NONE, 0);
}

// One request, all of whose keys are new.
static void by_requests(const sample_append* append) {
  static const int32_t q_begin[] = {0, kRows};
  static const int32_t k_length[] = {kRows};
  static const int32_t ids[kPages] = {4, 3, 2, 1, 0};
  annulus_append_problem problem = append->problem;
  annulus_append_operands operands = append->operands;
  annulus_batch_metadata step = ANNULUS_BATCH_METADATA_INIT;
  annulus_append_plan* plan = NULL;
  problem.place = ANNULUS_APPEND_REQUESTS;
  problem.rotary_order = ANNULUS_ROTARY_NONE;
  problem.table_dtype = 0;
  problem.most.requests = 1;
  problem.most.keys_of_one = kRows;
  CHECK_OK(annulus_append_plan_create(append->made->device, &problem, &plan));
  operands.q = operands.rotated_q = NULL;
  operands.slots = operands.positions = NULL;
  operands.cosines = operands.sines = NULL;
  step.q_begin = put(append->made, q_begin, sizeof q_begin);
  step.k_length = put(append->made, k_length, sizeof k_length);
  step.k_pages.ids = put(append->made, ids, sizeof ids);
  step.k_pages.width = kPages;
  operands.step = &step;
  clear(append);
  CHECK_OK(annulus_append_plan_run(plan, NULL, &operands));
  check_memory(append, 0, -1);
  step.struct_size = 4;
  CHECK_FAILS(annulus_append_plan_run(plan, NULL, &operands), ANNULUS_INVALID_ARGUMENT,
              "struct_size of annulus_batch_metadata is 4");
  operands.step = NULL;
  CHECK_FAILS(annulus_append_plan_run(plan, NULL, &operands), ANNULUS_INVALID_ARGUMENT,
              "q_begin is null");
  CHECK_OK(annulus_append_plan_destroy(plan));
}

static void broken_rules(const sample_append* append) {
  annulus_append_operands operands = append->operands;
  operands.k_pages = 3;
  CHECK_OK(annulus_append_plan_run(append->plan, NULL, &operands));
  check_status_is(append, ANNULUS_APPEND_RULE_SLOT, 0);
  CHECK_OK(annulus_append_plan_clear_status(append->plan, NULL, operands.status));
  check_status_is(append, ANNULUS_APPEND_RULE_NONE, 0);
  operands.k_pages = kPages;
  operands.table_rows = 1;
  CHECK_OK(annulus_append_plan_run(append->plan, NULL, &operands));
  check_status_is(append, ANNULUS_APPEND_RULE_POSITION, 1);
  CHECK(strcmp(annulus_append_rule_text(ANNULUS_APPEND_RULE_SLOT), "a slot that does not exist") ==
        0);
  CHECK(strcmp(annulus_append_rule_text(8), "an unknown rule") == 0);
  CHECK(strcmp(annulus_append_rule_text(-1), "an unknown rule") == 0);
}

static void wrong_problems(const sample_append* append) {
  static const double frequencies[kDim / 2] = {1, 0.5, 100};
  annulus_append_problem problem = append->problem;
  annulus_append_plan* none = NULL;
  CHECK_FAILS(annulus_append_problem_validate(NULL), ANNULUS_INVALID_ARGUMENT,
              "annulus_append_problem is null");
  problem.rotary_dims = 24;
  CHECK_FAILS(annulus_append_problem_validate(&problem), ANNULUS_UNSUPPORTED, "rotary.dims is 24");
  CHECK_FAILS(annulus_append_plan_create(append->made->device, &problem, &none),
              ANNULUS_UNSUPPORTED, "rotary.dims is 24");
  CHECK(none == NULL);
  problem.rotary_dims = 0;
  problem.frequencies = frequencies;
  problem.rotary_base = 0;
  CHECK_FAILS(annulus_append_problem_validate(&problem), ANNULUS_INVALID_ARGUMENT,
              "rotary.frequencies and rotary.tables");
  problem.table_dtype = 0;
  CHECK_FAILS(annulus_append_problem_validate(&problem), ANNULUS_INVALID_ARGUMENT,
              "rotary.frequencies has 100");
  problem.frequency_count = kDim;
  CHECK_FAILS(annulus_append_problem_validate(&problem), ANNULUS_INVALID_ARGUMENT,
              "frequencies has 32 entries, but 16 are read");
  problem.dim_qk = -1;
  CHECK_FAILS(annulus_append_problem_validate(&problem), ANNULUS_INVALID_ARGUMENT, "dim_qk is -1");
  problem.frequencies = NULL;
  problem.dim_qk = kDim;
  CHECK_FAILS(annulus_append_problem_validate(&problem), ANNULUS_INVALID_ARGUMENT,
              "rotary.base is 0");
  problem.struct_size = 12;
  CHECK_FAILS(annulus_append_problem_validate(&problem), ANNULUS_INVALID_ARGUMENT,
              "struct_size of annulus_append_problem is 12");
  CHECK_FAILS(annulus_append_plan_create(append->made->device, &append->problem, NULL),
              ANNULUS_INVALID_ARGUMENT, "plan (where the handle goes) is null");
}

static void wrong_runs(const sample_append* append) {
  annulus_append_operands operands = append->operands;
  annulus_append_status status = ANNULUS_APPEND_STATUS_INIT;
  CHECK_FAILS(annulus_append_plan_run(append->plan, NULL, NULL), ANNULUS_INVALID_ARGUMENT,
              "annulus_append_operands is null");
  operands.slots = NULL;
  CHECK_FAILS(annulus_append_plan_run(append->plan, NULL, &operands), ANNULUS_INVALID_ARGUMENT,
              "slots and slots_32 are both null");
  operands.slots = append->operands.slots;
  operands.v = operands.k;
  CHECK_FAILS(annulus_append_plan_run(append->plan, NULL, &operands), ANNULUS_INVALID_ARGUMENT,
              "give the tensor that is written memory of its own");
  CHECK_FAILS(annulus_append_plan_get_info(append->plan, NULL), ANNULUS_INVALID_ARGUMENT,
              "annulus_append_plan_info is null");
  CHECK_FAILS(annulus_append_plan_clear_status(append->plan, NULL, NULL), ANNULUS_INVALID_ARGUMENT,
              "the status is null");
  CHECK_FAILS(annulus_append_plan_get_status(append->plan, NULL, &status), ANNULUS_INVALID_ARGUMENT,
              "the status is null");
  CHECK_FAILS(annulus_append_plan_get_status(append->plan, append->operands.status, NULL),
              ANNULUS_INVALID_ARGUMENT, "annulus_append_status is null");
}

static void wrong_handle(annulus_append_plan* handle, const sample_append* append,
                         const char* part) {
  annulus_append_plan_info info = ANNULUS_APPEND_PLAN_INFO_INIT;
  annulus_append_status status = ANNULUS_APPEND_STATUS_INIT;
  uint32_t* word = append->operands.status;
  CHECK_FAILS(annulus_append_plan_get_info(handle, &info), ANNULUS_INVALID_ARGUMENT, part);
  CHECK_FAILS(annulus_append_plan_run(handle, NULL, &append->operands), ANNULUS_INVALID_ARGUMENT,
              part);
  CHECK_FAILS(annulus_append_plan_clear_status(handle, NULL, word), ANNULUS_INVALID_ARGUMENT, part);
  CHECK_FAILS(annulus_append_plan_get_status(handle, word, &status), ANNULUS_INVALID_ARGUMENT,
              part);
  CHECK_FAILS(annulus_append_plan_destroy(handle), ANNULUS_INVALID_ARGUMENT, part);
}

void test_append(void) {
  annulus_device* device = sample_open();
  sample* made = malloc(sizeof *made);
  sample_append* append = malloc(sizeof *append);
  sample_make(made, device);
  make(append, made);
  by_slots(append);
  by_requests(append);
  broken_rules(append);
  wrong_problems(append);
  wrong_runs(append);
  wrong_handle(NULL, append, "the append plan is null");
  wrong_handle((annulus_append_plan*)device, append, "is not a handle of type append plan");
  CHECK_OK(annulus_append_plan_destroy(append->plan));
  wrong_handle(append->plan, append, "the append plan was given back already");
  CHECK_OK(annulus_device_close(device));
  free(append);
  free(made);
}
