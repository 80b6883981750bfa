// Batches of requests: the answer of one sequence whose rows are two requests over the same pages,
// and rejected input.

#include <annulus/c_batch.h>
#include <stdlib.h>
#include <string.h>

#include "c_abi/check.h"
#include "c_abi/sample.h"

enum { kPageRows = 8, kPages = kRows / kPageRows, kCut = 20 };

// Rows 0 to 20 of the sample are a request over the keys before row 20. The other rows are a
// request over all keys. Together they are causal attention of the whole sample.
typedef struct sample_batch {
  const sample* made;
  annulus_batch_problem problem;
  annulus_batch_plan* plan;
  annulus_batch_metadata metadata;
  annulus_batch_operands operands;
  void* workspace;
} sample_batch;

static int32_t* put(const sample* made, const int32_t* numbers, size_t count) {
  void* memory = NULL;
  CHECK_OK(annulus_device_allocate(made->device, count * sizeof *numbers, &memory));
  CHECK_OK(annulus_device_copy_to_device(made->device, memory, numbers, count * sizeof *numbers));
  return memory;
}

static void make(sample_batch* batch, const sample* made) {
  static const int32_t q_begin[] = {0, kCut, kRows};
  static const int32_t k_length[] = {kCut, kRows};
  // The first request has three pages. Its other entries belong to no request.
  static const int32_t ids[2 * kPages] = {0, 1, 2, 1 << 30, -1, 0, 1, 2, 3, 4};
  const annulus_batch_problem problem = ANNULUS_BATCH_PROBLEM_INIT;
  const annulus_batch_metadata metadata = ANNULUS_BATCH_METADATA_INIT;
  const annulus_batch_operands operands = ANNULUS_BATCH_OPERANDS_INIT;
  const annulus_row_strides rows = {kHeads * kDim, kDim};
  const annulus_row_strides lse_rows = {1, kRows};
  const annulus_batch_strides pages = {kPageRows * kKvHeads * kDim, kKvHeads * kDim, kDim};
  size_t bytes = 0;
  void* lse = NULL;
  memset(batch, 0, sizeof *batch);
  batch->made = made;
  batch->problem = problem;
  batch->problem.heads = kHeads;
  batch->problem.kv_heads = kKvHeads;
  batch->problem.dim_qk = batch->problem.dim_v = kDim;
  batch->problem.pattern = "causal";
  batch->problem.most.requests = 2;
  batch->problem.most.rows = kRows;
  batch->problem.most.keys_of_one = kRows;
  batch->problem.page_rows = kPageRows;
  batch->problem.want_lse = 1;
  CHECK_OK(annulus_batch_problem_validate(&batch->problem));
  CHECK_OK(annulus_batch_plan_create(made->device, &batch->problem, NULL, &batch->plan));
  CHECK_OK(annulus_batch_plan_workspace_bytes(batch->plan, &bytes));
  CHECK_OK(annulus_device_allocate(made->device, bytes, &batch->workspace));

  batch->metadata = metadata;
  batch->metadata.q_begin = put(made, q_begin, 3);
  batch->metadata.k_length = put(made, k_length, 2);
  batch->metadata.k_pages.ids = put(made, ids, 2 * kPages);
  batch->metadata.k_pages.width = kPages;
  CHECK_OK(annulus_device_allocate(made->device, kHeads * kRows * sizeof(float), &lse));
  batch->operands = operands;
  batch->operands.q = made->operands.q;
  batch->operands.k = made->operands.k;
  batch->operands.v = made->operands.v;
  batch->operands.o = made->operands.o;
  batch->operands.lse = lse;
  batch->operands.q_strides = batch->operands.o_strides = rows;
  batch->operands.lse_strides = lse_rows;
  batch->operands.k_strides = batch->operands.v_strides = pages;
  batch->operands.k_pages = batch->operands.v_pages = kPages;
}

static void check_status_is(const sample_batch* batch, int64_t rule, int64_t request) {
  annulus_batch_status status = ANNULUS_BATCH_STATUS_INIT;
  CHECK_OK(annulus_batch_plan_get_status(batch->plan, batch->workspace, &status));
  CHECK(status.rule == rule && status.request == request);
}

static void check_answer(const sample_batch* batch) {
  float lse[kHeads * kRows];
  CHECK_OK(annulus_device_copy_to_host(batch->made->device, lse, batch->operands.lse, sizeof lse));
  CHECK(sample_error(batch->made, sample_causal, lse) < 1e-2);
}

static void answers(const sample_batch* batch) {
  annulus_batch_plan_info info = ANNULUS_BATCH_PLAN_INFO_INIT;
  CHECK_OK(annulus_batch_plan_get_info(batch->plan, &info));
  CHECK(strlen(info.config) > 4 && strstr(info.decisions, "\n") != NULL);
  CHECK(strstr(info.specialised_source, "decode_forward") != NULL);
  CHECK(info.most.rows_of_one == kRows && info.most.keys == 2 * kRows);
  // One launch for requests with few queries, and one for requests with many.
  CHECK(info.launches == 2 && info.ctas > 0 && info.threads >= 32 && info.part_keys >= 128);
  CHECK(info.registers > 0);
  CHECK(info.shared_bytes > 0);
  CHECK(info.bytes_under_way > 0);
  CHECK(info.device_bytes > 0 && info.plan_ms >= 0 && info.compile_ms > 0);

  sample_clear(batch->made);
  CHECK_OK(annulus_batch_plan_prepare(batch->plan, NULL, &batch->metadata, batch->workspace));
  CHECK_OK(annulus_batch_plan_run(batch->plan, NULL, &batch->operands, batch->workspace));
  check_answer(batch);
  check_status_is(batch, ANNULUS_RULE_NONE, 0);
}

// O overwrites Q.
static void in_place(const sample_batch* batch) {
  const size_t bytes = kRows * kHeads * kDim * 2;
  annulus_batch_operands operands = batch->operands;
  void* q = malloc(bytes);
  CHECK_OK(annulus_device_copy_to_host(batch->made->device, q, operands.q, bytes));
  CHECK_OK(annulus_device_copy_to_device(batch->made->device, operands.o, q, bytes));
  free(q);
  operands.q = operands.o;
  CHECK_OK(annulus_batch_plan_run(batch->plan, NULL, &operands, batch->workspace));
  check_answer(batch);
}

// A batch over the same keys without pages, with the default scale. Then keys that begin after the
// end of K.
static void without_pages(sample_batch* batch) {
  static const int32_t k_begin[] = {0, 0};
  static const int32_t beyond[] = {0, 1000000000};
  static const int32_t too_long[] = {kCut, kRows + 1};
  annulus_batch_problem problem = batch->problem;
  annulus_batch_metadata metadata = ANNULUS_BATCH_METADATA_INIT;
  annulus_batch_options options = ANNULUS_BATCH_OPTIONS_INIT;
  annulus_batch_operands operands = batch->operands;
  annulus_batch_status status = ANNULUS_BATCH_STATUS_INIT;
  annulus_batch_plan* plan = NULL;
  size_t bytes = 0;
  void* workspace = NULL;
  problem.page_rows = 0;
  operands.k_pages = operands.v_pages = kRows;
  problem.has_scale = 1;
  problem.scale = 0.17677669529663687;
  options.part_keys = 128;
  options.max_multiprocessors = 1;
  options.check_status = 1;
  options.config = "decode m16 n64 w4 s2";
  metadata.q_begin = batch->metadata.q_begin;
  metadata.k_length = batch->metadata.k_length;
  metadata.k_begin = put(batch->made, k_begin, 2);
  CHECK_OK(annulus_batch_plan_create(batch->made->device, &problem, &options, &plan));
  CHECK_OK(annulus_batch_plan_workspace_bytes(plan, &bytes));
  CHECK_OK(annulus_device_allocate(batch->made->device, bytes, &workspace));
  sample_clear(batch->made);
  CHECK_OK(annulus_batch_plan_prepare(plan, NULL, &metadata, workspace));
  CHECK_OK(annulus_batch_plan_run(plan, NULL, &operands, workspace));
  check_answer(batch);
  metadata.k_begin = put(batch->made, beyond, 2);
  CHECK_OK(annulus_batch_plan_prepare(plan, NULL, &metadata, workspace));
  CHECK_OK(annulus_batch_plan_run(plan, NULL, &operands, workspace));
  CHECK_OK(annulus_batch_plan_get_status(plan, workspace, &status));
  CHECK(status.rule == ANNULUS_RULE_PAGES && status.request == 1);
  metadata.k_pages = batch->metadata.k_pages;
  CHECK_FAILS(annulus_batch_plan_prepare(plan, NULL, &metadata, workspace),
              ANNULUS_INVALID_ARGUMENT, "k_pages.ids is given");

  // With check_status a run checks the step first.
  metadata.k_pages.ids = NULL;
  metadata.k_length = put(batch->made, too_long, 2);
  CHECK_OK(annulus_batch_plan_prepare(plan, NULL, &metadata, workspace));
  CHECK_FAILS(annulus_batch_plan_run(plan, NULL, &operands, workspace), ANNULUS_INVALID_ARGUMENT,
              "request 1 of the step has a number of keys");
  CHECK_OK(annulus_batch_plan_destroy(plan));
}

// Every block of 16 keys is listed, in any order, so the answer is the same. Then one block is
// listed twice.
static void with_blocks(const sample_batch* batch) {
  static const int32_t blocks[2 * kKvHeads * 4] = {1, -1, 0, -1, 0, 1, -1, -1,
                                                   2, 0,  1, -1, 2, 1, -1, 0};
  static const int32_t twice[2 * kKvHeads * 4] = {1, -1, 0, -1, 0, 1, -1, -1,
                                                  2, 0,  1, -1, 2, 1, 2,  0};
  annulus_batch_problem problem = batch->problem;
  annulus_batch_metadata metadata = batch->metadata;
  annulus_batch_plan* plan = NULL;
  annulus_batch_status status = ANNULUS_BATCH_STATUS_INIT;
  size_t bytes = 0;
  void* workspace = NULL;
  problem.max_blocks = 4;
  CHECK_FAILS(annulus_batch_problem_validate(&problem), ANNULUS_INVALID_ARGUMENT,
              "max_blocks is 4, but block_keys is 0");
  problem.block_keys = 16;
  problem.max_blocks = 0;
  CHECK_FAILS(annulus_batch_problem_validate(&problem), ANNULUS_INVALID_ARGUMENT,
              "max_blocks is 0");
  problem.max_blocks = 4;
  CHECK_OK(annulus_batch_plan_create(batch->made->device, &problem, NULL, &plan));
  CHECK_OK(annulus_batch_plan_workspace_bytes(plan, &bytes));
  CHECK_OK(annulus_device_allocate(batch->made->device, bytes, &workspace));
  CHECK_FAILS(annulus_batch_plan_prepare(plan, NULL, &metadata, workspace),
              ANNULUS_INVALID_ARGUMENT, "blocks is null");
  metadata.blocks = put(batch->made, blocks, 2 * kKvHeads * 4);
  CHECK_FAILS(annulus_batch_plan_prepare(batch->plan, NULL, &metadata, batch->workspace),
              ANNULUS_INVALID_ARGUMENT, "blocks is given");
  sample_clear(batch->made);
  CHECK_OK(annulus_batch_plan_prepare(plan, NULL, &metadata, workspace));
  CHECK_OK(annulus_batch_plan_run(plan, NULL, &batch->operands, workspace));
  check_answer(batch);
  metadata.blocks = put(batch->made, twice, 2 * kKvHeads * 4);
  CHECK_OK(annulus_batch_plan_prepare(plan, NULL, &metadata, workspace));
  CHECK_OK(annulus_batch_plan_get_status(plan, workspace, &status));
  CHECK(status.rule == ANNULUS_RULE_BLOCKS && status.request == 1);
  CHECK_OK(annulus_batch_plan_destroy(plan));
}

// Ends that hide nothing, and then an end after the request's keys.
static void with_limits(const sample_batch* batch) {
  int32_t row_end[kRows];
  annulus_batch_problem problem = batch->problem;
  annulus_batch_metadata metadata = batch->metadata;
  annulus_batch_plan* plan = NULL;
  annulus_batch_status status = ANNULUS_BATCH_STATUS_INIT;
  size_t bytes = 0;
  void* workspace = NULL;
  for (int i = 0; i < kRows; ++i) row_end[i] = i < kCut ? kCut : kRows;
  problem.row_limits = 1;
  CHECK_OK(annulus_batch_plan_create(batch->made->device, &problem, NULL, &plan));
  CHECK_OK(annulus_batch_plan_workspace_bytes(plan, &bytes));
  CHECK_OK(annulus_device_allocate(batch->made->device, bytes, &workspace));
  CHECK_FAILS(annulus_batch_plan_prepare(plan, NULL, &metadata, workspace),
              ANNULUS_INVALID_ARGUMENT, "row_end and tree_bits are null");
  metadata.row_end = put(batch->made, row_end, kRows);
  CHECK_FAILS(annulus_batch_plan_prepare(batch->plan, NULL, &metadata, batch->workspace),
              ANNULUS_INVALID_ARGUMENT, "row_end is given");
  sample_clear(batch->made);
  CHECK_OK(annulus_batch_plan_prepare(plan, NULL, &metadata, workspace));
  CHECK_OK(annulus_batch_plan_run(plan, NULL, &batch->operands, workspace));
  check_answer(batch);
  row_end[kCut - 1] = kCut + 1;
  metadata.row_end = put(batch->made, row_end, kRows);
  CHECK_OK(annulus_batch_plan_prepare(plan, NULL, &metadata, workspace));
  CHECK_OK(annulus_batch_plan_get_status(plan, workspace, &status));
  CHECK(status.rule == ANNULUS_RULE_ROW_END && status.request == 0);
  CHECK_OK(annulus_batch_plan_destroy(plan));
}

// If blocks are longer than any request, the first of two ranks has all keys.
static void with_interleave(const sample_batch* batch) {
  annulus_batch_problem problem = batch->problem;
  annulus_batch_plan* plan = NULL;
  size_t bytes = 0;
  void* workspace = NULL;
  int64_t held = 0;
  problem.interleave.block = 2;
  problem.interleave.ranks = 3;
  problem.interleave.rank = 1;
  CHECK_OK(annulus_interleave_held_keys(&problem.interleave, 9, &held));
  CHECK(held == 3);  // the keys 2, 3 and 8
  CHECK_FAILS(annulus_interleave_held_keys(&problem.interleave, -1, &held),
              ANNULUS_INVALID_ARGUMENT, "keys is -1");
  CHECK_FAILS(annulus_interleave_held_keys(NULL, 9, &held), ANNULUS_INVALID_ARGUMENT,
              "interleave is null");
  CHECK_FAILS(annulus_interleave_held_keys(&problem.interleave, 9, NULL), ANNULUS_INVALID_ARGUMENT,
              "held");
  problem.interleave.rank = 3;
  CHECK_FAILS(annulus_batch_problem_validate(&problem), ANNULUS_INVALID_ARGUMENT,
              "interleave.rank is 3");
  problem.interleave.block = kRows;
  problem.interleave.rank = 0;
  CHECK_OK(annulus_batch_plan_create(batch->made->device, &problem, NULL, &plan));
  CHECK_OK(annulus_batch_plan_workspace_bytes(plan, &bytes));
  CHECK_OK(annulus_device_allocate(batch->made->device, bytes, &workspace));
  sample_clear(batch->made);
  CHECK_OK(annulus_batch_plan_prepare(plan, NULL, &batch->metadata, workspace));
  CHECK_OK(annulus_batch_plan_run(plan, NULL, &batch->operands, workspace));
  check_answer(batch);
  CHECK_OK(annulus_batch_plan_destroy(plan));
}

// Wrong numbers in device memory.
static void broken_rules(sample_batch* batch) {
  static const int32_t too_long[] = {kCut, kRows + 1};
  static const int32_t no_page[2 * kPages] = {0, 1, kPages, 0, 0, 0, 1, 2, 3, 4};
  annulus_batch_metadata metadata = batch->metadata;
  metadata.k_length = put(batch->made, too_long, 2);
  CHECK_OK(annulus_batch_plan_prepare(batch->plan, NULL, &metadata, batch->workspace));
  check_status_is(batch, ANNULUS_RULE_KEYS, 1);
  metadata.k_length = batch->metadata.k_length;
  metadata.k_pages.ids = put(batch->made, no_page, 2 * kPages);
  CHECK_OK(annulus_batch_plan_prepare(batch->plan, NULL, &metadata, batch->workspace));
  check_status_is(batch, ANNULUS_RULE_NONE, 0);
  CHECK_OK(annulus_batch_plan_run(batch->plan, NULL, &batch->operands, batch->workspace));
  check_status_is(batch, ANNULUS_RULE_PAGE, 0);
  CHECK(strstr(annulus_batch_rule_text(ANNULUS_RULE_PAGE), "page") != NULL);
  CHECK(strcmp(annulus_batch_rule_text(ANNULUS_RULE_POSITION), "positions beyond 2^30") == 0);
  CHECK(strcmp(annulus_batch_rule_text(11), "an unknown rule") == 0);
  CHECK(strcmp(annulus_batch_rule_text(-1), "an unknown rule") == 0);
  CHECK_OK(annulus_batch_plan_prepare(batch->plan, NULL, &batch->metadata, batch->workspace));
}

static void refused(const sample_batch* batch, const annulus_batch_problem* problem,
                    const annulus_batch_options* options, annulus_status code, const char* part) {
  annulus_batch_plan* none = NULL;
  CHECK_FAILS(annulus_batch_plan_create(batch->made->device, problem, options, &none), code, part);
  CHECK(none == NULL);
}

static void wrong_problems(const sample_batch* batch) {
  annulus_batch_problem problem = batch->problem;
  annulus_batch_options options = ANNULUS_BATCH_OPTIONS_INIT;
  char text[4096] = "";
  CHECK_FAILS(annulus_batch_problem_validate(NULL), ANNULUS_INVALID_ARGUMENT,
              "annulus_batch_problem is null");
  problem.most.requests = 0;
  CHECK_FAILS(annulus_batch_problem_validate(&problem), ANNULUS_INVALID_ARGUMENT,
              "most.requests is 0");
  refused(batch, &problem, NULL, ANNULUS_INVALID_ARGUMENT, "most.requests is 0");
  problem.most.requests = 2;
  problem.dtype = ANNULUS_FLOAT8_E4M3;
  CHECK_FAILS(annulus_batch_problem_validate(&problem), ANNULUS_UNSUPPORTED, "fp16 or bf16");
  problem.dtype = 99;
  CHECK_FAILS(annulus_batch_problem_validate(&problem), ANNULUS_INVALID_ARGUMENT,
              "dtype 99 (unknown dtype)");
  problem.dtype = ANNULUS_BFLOAT16;
  problem.pattern = "strided(8,4,16)";
  refused(batch, &problem, NULL, ANNULUS_UNSUPPORTED, "has no kernel for batches");
  problem.pattern = "causal &";
  refused(batch, &problem, NULL, ANNULUS_PARSE, "");
  problem.pattern = "causal";
  problem.score = "softcap(30)";
  problem.softcap = 20;
  refused(batch, &problem, NULL, ANNULUS_INVALID_ARGUMENT, "softcap is given by itself and in");
  problem.softcap = 0;
  CHECK_OK(annulus_batch_problem_validate(&problem));
  problem.score = NULL;
  problem.want_lse = 2;
  CHECK_FAILS(annulus_batch_problem_validate(&problem), ANNULUS_INVALID_ARGUMENT, "want_lse is 2");
  problem.struct_size = 12;
  CHECK_FAILS(annulus_batch_problem_validate(&problem), ANNULUS_INVALID_ARGUMENT,
              "struct_size of annulus_batch_problem is 12");
  options.part_keys = 100;
  refused(batch, &batch->problem, &options, ANNULUS_INVALID_ARGUMENT, "part_keys is 100");
  options.part_keys = 0;
  options.max_workspace_bytes = 16;
  refused(batch, &batch->problem, &options, ANNULUS_OUT_OF_MEMORY, "max_workspace_bytes is 16");
  options.max_workspace_bytes = 0;
  options.config = "decode m16 n64 w4";
  refused(batch, &batch->problem, &options, ANNULUS_INVALID_ARGUMENT, "is not a configuration of");
  memset(text, 'm', sizeof text - 1);
  options.config = text;
  refused(batch, &batch->problem, &options, ANNULUS_INVALID_ARGUMENT,
          "mmm...' is not a configuration");
  CHECK(strlen(annulus_last_error()) < sizeof text / 4);
  options.config = "decode m16 n64 w8 s2";
  refused(batch, &batch->problem, &options, ANNULUS_UNSUPPORTED, "is not possible here: ");
  options.config = NULL;
  options.check_status = 7;
  refused(batch, &batch->problem, &options, ANNULUS_INVALID_ARGUMENT, "check_status is 7");
  options.struct_size = 0;
  refused(batch, &batch->problem, &options, ANNULUS_INVALID_ARGUMENT, "annulus_batch_options");
  CHECK_FAILS(annulus_batch_plan_create(batch->made->device, &batch->problem, NULL, NULL),
              ANNULUS_INVALID_ARGUMENT, "plan (where the handle goes) is null");
}

static void wrong_steps(const sample_batch* batch) {
  annulus_batch_metadata metadata = batch->metadata;
  annulus_batch_operands operands = batch->operands;
  CHECK_FAILS(annulus_batch_plan_prepare(batch->plan, NULL, NULL, batch->workspace),
              ANNULUS_INVALID_ARGUMENT, "annulus_batch_metadata is null");
  CHECK_FAILS(annulus_batch_plan_prepare(batch->plan, NULL, &metadata, NULL),
              ANNULUS_INVALID_ARGUMENT, "the workspace at 0x0");
  metadata.q_begin = NULL;
  CHECK_FAILS(annulus_batch_plan_prepare(batch->plan, NULL, &metadata, batch->workspace),
              ANNULUS_INVALID_ARGUMENT, "q_begin is null");
  metadata.struct_size = 4;
  CHECK_FAILS(annulus_batch_plan_prepare(batch->plan, NULL, &metadata, batch->workspace),
              ANNULUS_INVALID_ARGUMENT, "struct_size of annulus_batch_metadata is 4");
  CHECK_FAILS(annulus_batch_plan_run(batch->plan, NULL, NULL, batch->workspace),
              ANNULUS_INVALID_ARGUMENT, "annulus_batch_operands is null");
  CHECK_FAILS(annulus_batch_plan_run(batch->plan, NULL, &operands, (char*)batch->workspace + 8),
              ANNULUS_INVALID_ARGUMENT, "at a multiple of 16");
  operands.lse = NULL;
  CHECK_FAILS(annulus_batch_plan_run(batch->plan, NULL, &operands, batch->workspace),
              ANNULUS_INVALID_ARGUMENT, "LSE is null");
  operands.lse = batch->operands.lse;
  operands.k_strides.row = (int64_t)1 << 30;
  CHECK_FAILS(annulus_batch_plan_run(batch->plan, NULL, &operands, batch->workspace),
              ANNULUS_UNSUPPORTED, "row stride of K");
}

static void wrong_handle(annulus_batch_plan* handle, const sample_batch* batch, const char* part) {
  annulus_batch_plan_info info = ANNULUS_BATCH_PLAN_INFO_INIT;
  annulus_batch_status status = ANNULUS_BATCH_STATUS_INIT;
  size_t bytes = 0;
  CHECK_FAILS(annulus_batch_plan_get_info(handle, &info), ANNULUS_INVALID_ARGUMENT, part);
  CHECK_FAILS(annulus_batch_plan_workspace_bytes(handle, &bytes), ANNULUS_INVALID_ARGUMENT, part);
  CHECK_FAILS(annulus_batch_plan_prepare(handle, NULL, &batch->metadata, batch->workspace),
              ANNULUS_INVALID_ARGUMENT, part);
  CHECK_FAILS(annulus_batch_plan_run(handle, NULL, &batch->operands, batch->workspace),
              ANNULUS_INVALID_ARGUMENT, part);
  CHECK_FAILS(annulus_batch_plan_get_status(handle, batch->workspace, &status),
              ANNULUS_INVALID_ARGUMENT, part);
  CHECK_FAILS(annulus_batch_plan_destroy(handle), ANNULUS_INVALID_ARGUMENT, part);
}

static void missing_outputs(const sample_batch* batch) {
  annulus_batch_status status = ANNULUS_BATCH_STATUS_INIT;
  CHECK_FAILS(annulus_batch_plan_get_info(batch->plan, NULL), ANNULUS_INVALID_ARGUMENT,
              "annulus_batch_plan_info is null");
  CHECK_FAILS(annulus_batch_plan_workspace_bytes(batch->plan, NULL), ANNULUS_INVALID_ARGUMENT,
              "bytes");
  CHECK_FAILS(annulus_batch_plan_get_status(batch->plan, batch->workspace, NULL),
              ANNULUS_INVALID_ARGUMENT, "annulus_batch_status is null");
  CHECK_FAILS(annulus_batch_plan_get_status(batch->plan, NULL, &status), ANNULUS_INVALID_ARGUMENT,
              "the workspace at 0x0");
}

void test_batch(void) {
  annulus_device* device = sample_open();
  sample* made = malloc(sizeof *made);
  sample_batch* batch = malloc(sizeof *batch);
  sample_make(made, device);
  make(batch, made);
  answers(batch);
  in_place(batch);
  without_pages(batch);
  with_blocks(batch);
  with_limits(batch);
  with_interleave(batch);
  broken_rules(batch);
  wrong_problems(batch);
  wrong_steps(batch);
  missing_outputs(batch);
  wrong_handle(NULL, batch, "the batch plan is null");
  wrong_handle((annulus_batch_plan*)device, batch, "is not a handle of type batch plan");
  CHECK_OK(annulus_batch_plan_destroy(batch->plan));
  wrong_handle(batch->plan, batch, "the batch plan was given back already");
  CHECK_OK(annulus_device_close(device));
  free(batch);
  free(made);
}
