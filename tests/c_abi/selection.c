// Blocks chosen on the device, the share of attention that they hold, and blocks that change.

#include <annulus/c.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <annulus/c_tools.h>
#include "c_abi/check.h"
#include "c_abi/sample.h"

enum { kBlock = 8, kBlocks = kRows / kBlock, kMax = 2, kRecalls = kHeads * kRows };

// A problem with LSEs, and the memory for runs.
typedef struct run {
  const sample* made;
  annulus_problem problem;
  annulus_selection selection;
  annulus_operands operands;
  void* chosen;  // [H, rows, kMax]
} run;

static void* allocate(const run* of, size_t bytes) {
  void* memory = NULL;
  CHECK_OK(annulus_device_allocate(of->made->device, bytes, &memory));
  return memory;
}

static void prepare(run* of, const sample* made) {
  const annulus_selection selection = ANNULUS_SELECTION_INIT;
  of->made = made;
  of->problem = made->problem;
  of->problem.pattern = "causal";
  of->problem.want_lse = 1;
  of->selection = selection;
  of->selection.block_rows = of->selection.block_columns = kBlock;
  of->selection.max_blocks = kMax;
  of->operands = made->operands;
  of->operands.lse = allocate(of, kRecalls * sizeof(float));
  of->chosen = allocate(of, kHeads * kBlocks * kMax * 4);
}

static annulus_status selected_plan(annulus_device* device, const annulus_problem* problem,
                                    const annulus_selection* selection, annulus_plan** plan) {
  annulus_plan_options options = ANNULUS_PLAN_OPTIONS_INIT;
  options.selection = selection;
  return annulus_plan_create(device, problem, &options, plan);
}

static annulus_status run_with(annulus_plan* plan, const annulus_operands* operands,
                               void* workspace, const annulus_selection_buffers* buffers) {
  annulus_operands with = *operands;
  with.selection = buffers;
  return annulus_plan_run(plan, NULL, &with, workspace);
}

static annulus_plan* plan_of(const run* of, void** workspace) {
  annulus_plan* plan = NULL;
  size_t bytes = 0;
  CHECK_OK(selected_plan(of->made->device, &of->problem, &of->selection, &plan));
  CHECK_OK(annulus_plan_workspace_bytes(plan, &bytes));
  CHECK(bytes > 0);
  *workspace = allocate(of, bytes);
  return plan;
}

// The best two blocks of a row are the sink and the diagonal, which are always kept.
static int sink_and_diagonal(int q, int k) {
  return k <= q && (k / kBlock == 0 || k / kBlock == q / kBlock);
}

static void chooses(run* of) {
  annulus_selection_buffers buffers = ANNULUS_SELECTION_BUFFERS_INIT;
  int32_t chosen[kHeads * kBlocks * kMax];
  void* workspace = NULL;
  annulus_plan* plan = plan_of(of, &workspace);
  int row = 0;
  buffers.chosen = of->chosen;
  buffers.max_chosen = kMax;
  sample_clear(of->made);
  CHECK_OK(run_with(plan, &of->operands, workspace, &buffers));
  CHECK(sample_error(of->made, sink_and_diagonal, NULL) < 1e-2);
  CHECK_OK(annulus_device_copy_to_host(of->made->device, chosen, of->chosen, sizeof chosen));
  for (row = 0; row < kHeads * kBlocks; ++row) {
    const int diagonal = row % kBlocks;
    CHECK(chosen[row * kMax] == 0);
    CHECK(chosen[row * kMax + 1] == (diagonal == 0 ? -1 : diagonal));
  }
  sample_clear(of->made);
  CHECK_OK(annulus_plan_run(plan, NULL, &of->operands, workspace));
  CHECK(sample_error(of->made, sink_and_diagonal, NULL) < 1e-2);
  CHECK_FAILS(run_with(plan, &of->operands, NULL, NULL), ANNULUS_INVALID_ARGUMENT, "workspace");
  buffers.max_chosen = -1;
  CHECK_FAILS(run_with(plan, &of->operands, workspace, &buffers), ANNULUS_INVALID_ARGUMENT, "-1");
  buffers.struct_size = 9;
  CHECK_FAILS(run_with(plan, &of->operands, workspace, &buffers), ANNULUS_INVALID_ARGUMENT,
              "struct_size of annulus_selection_buffers is 9");
  CHECK_OK(annulus_plan_destroy(plan));
  CHECK_OK(annulus_device_release(of->made->device, workspace));
}

// Measures the recall of the sparse run, whose LSEs are still in memory. Some rows saw all of the
// attention, and none saw nothing.
static void recall(run* of) {
  float recalls[kRecalls];
  float* memory = allocate(of, sizeof recalls);
  annulus_recall_meter* meter = NULL;
  size_t bytes = 0;
  double mean = 0;
  double least = 0;
  void* workspace = NULL;
  CHECK_OK(annulus_recall_meter_create(of->made->device, &of->problem, NULL, &meter));
  CHECK_OK(annulus_recall_meter_workspace_bytes(meter, &bytes));
  workspace = allocate(of, bytes);
  CHECK_OK(annulus_recall_meter_run(meter, NULL, &of->operands, memory, workspace));
  CHECK_OK(annulus_device_copy_to_host(of->made->device, recalls, memory, sizeof recalls));
  CHECK(fabs((double)recalls[2 * kBlock - 1] - 1) < 1e-3);  // it sees only two blocks
  CHECK(recalls[kRows - 1] > 0 && recalls[kRows - 1] < 0.9);
  CHECK_OK(annulus_recall_summarise(recalls, kRecalls, &mean, &least));
  CHECK(least > 0 && least < mean && mean < 1);
  CHECK_OK(annulus_recall_summarise(NULL, 0, &mean, &least));
  CHECK(mean == 1 && least == 1);
  CHECK_FAILS(annulus_recall_summarise(NULL, 3, &mean, &least), ANNULUS_INVALID_ARGUMENT, "recall");
  CHECK_FAILS(annulus_recall_meter_run(meter, NULL, &of->operands, NULL, workspace),
              ANNULUS_INVALID_ARGUMENT, "recall");
  CHECK_FAILS(annulus_recall_meter_workspace_bytes(meter, NULL), ANNULUS_INVALID_ARGUMENT, "bytes");
  CHECK_OK(annulus_recall_meter_destroy(meter));
  CHECK_FAILS(annulus_recall_meter_run(meter, NULL, &of->operands, memory, workspace),
              ANNULUS_INVALID_ARGUMENT, "the recall meter was given back");
  of->problem.want_lse = 0;
  CHECK_FAILS(annulus_recall_meter_create(of->made->device, &of->problem, NULL, &meter),
              ANNULUS_INVALID_ARGUMENT, "want_lse");
  of->problem.want_lse = 1;
}

// Rows with empty lists get the best block outside at the first update.
static void importance(run* of) {
  annulus_selection_buffers buffers = ANNULUS_SELECTION_BUFFERS_INIT;
  annulus_tracker_options options = ANNULUS_TRACKER_OPTIONS_INIT;
  annulus_importance_tracker* tracker = NULL;
  annulus_plan* plan = NULL;
  int32_t listed[kHeads * kBlocks * kMax];
  size_t state_bytes = 0;
  size_t bytes = 0;
  void* state = NULL;
  void* scratch = NULL;
  void* workspace = NULL;
  void* zeros = NULL;
  of->selection.rule = ANNULUS_GIVEN;
  plan = plan_of(of, &workspace);
  memset(listed, 0xff, sizeof listed);
  CHECK_OK(annulus_device_copy_to_device(of->made->device, of->chosen, listed, sizeof listed));
  CHECK_OK(annulus_importance_tracker_create(of->made->device, &of->problem, &of->selection,
                                             &options, &tracker));
  CHECK_OK(annulus_importance_tracker_sizes(tracker, &state_bytes, &bytes));
  CHECK(state_bytes == kHeads * kBlocks * kBlocks * 8);
  CHECK_OK(annulus_importance_tracker_sizes(tracker, NULL, NULL));
  state = allocate(of, state_bytes);
  scratch = allocate(of, bytes);
  zeros = calloc(1, state_bytes);
  CHECK_OK(annulus_device_copy_to_device(of->made->device, state, zeros, state_bytes));
  buffers.given = of->chosen;
  CHECK_OK(run_with(plan, &of->operands, workspace, &buffers));
  CHECK_OK(
      annulus_importance_tracker_measure(tracker, NULL, &of->operands, of->chosen, state, scratch));
  CHECK_OK(annulus_device_copy_to_host(of->made->device, zeros, state, state_bytes));
  CHECK(((const uint64_t*)zeros)[0] > 0);  // the first block sees only itself
  CHECK_OK(
      annulus_importance_tracker_update(tracker, NULL, &of->operands, of->chosen, state, scratch));
  CHECK_OK(annulus_device_copy_to_host(of->made->device, listed, of->chosen, sizeof listed));
  CHECK(listed[0] == -1);  // it sees only blocks that are always kept
  CHECK(listed[(kBlocks - 1) * kMax] > 0 && listed[(kBlocks - 1) * kMax] < kBlocks - 1);
  CHECK_FAILS(
      annulus_importance_tracker_measure(tracker, NULL, &of->operands, NULL, state, scratch),
      ANNULUS_INVALID_ARGUMENT, "given");
  CHECK_FAILS(annulus_importance_tracker_update(tracker, NULL, NULL, of->chosen, state, scratch),
              ANNULUS_INVALID_ARGUMENT, "annulus_operands is null");
  CHECK_OK(annulus_importance_tracker_destroy(tracker));
  CHECK_FAILS(annulus_importance_tracker_sizes(tracker, &bytes, NULL), ANNULUS_INVALID_ARGUMENT,
              "the importance tracker was given back");
  options.max_added = -1;
  CHECK_FAILS(annulus_importance_tracker_create(of->made->device, &of->problem, &of->selection,
                                                &options, &tracker),
              ANNULUS_INVALID_ARGUMENT, "-1");
  CHECK_OK(annulus_plan_destroy(plan));
  free(zeros);
}

static void refused(const run* of) {
  const annulus_selection_buffers buffers = ANNULUS_SELECTION_BUFFERS_INIT;
  annulus_plan_options options = ANNULUS_PLAN_OPTIONS_INIT;
  annulus_selection selection = of->selection;
  annulus_problem problem = of->problem;
  annulus_plan* plan = NULL;
  annulus_plan* none = NULL;
#define REFUSED(field, value, code, part)                                                  \
  do {                                                                                     \
    selection.field = (value);                                                             \
    CHECK_FAILS(selected_plan(of->made->device, &problem, &selection, &none), code, part); \
    selection = of->selection;                                                             \
  } while (0)
  REFUSED(rule, 9, ANNULUS_INVALID_ARGUMENT, "9");
  REFUSED(pool, -4, ANNULUS_INVALID_ARGUMENT, "-4");
  REFUSED(max_blocks, -3, ANNULUS_INVALID_ARGUMENT, "-3");
  REFUSED(block_rows, 0, ANNULUS_INVALID_ARGUMENT, "0");
  REFUSED(sink_blocks, -1, ANNULUS_INVALID_ARGUMENT, "-1");
  REFUSED(struct_size, 2, ANNULUS_INVALID_ARGUMENT, "struct_size of annulus_selection is 2");
#undef REFUSED
  problem.pattern = "sum(causal, sink(2))";
  CHECK_FAILS(selected_plan(of->made->device, &problem, &selection, &none), ANNULUS_UNSUPPORTED,
              "sum");
  CHECK_FAILS(selected_plan(NULL, &of->problem, &selection, &none), ANNULUS_INVALID_ARGUMENT,
              "the device is null");
  CHECK(none == NULL);
  CHECK_OK(annulus_plan_create(of->made->device, &of->problem, NULL, &plan));
  CHECK_FAILS(run_with(plan, &of->operands, NULL, &buffers), ANNULUS_INVALID_ARGUMENT,
              "has no selection");
  options.selection = &selection;
  CHECK_FAILS(annulus_plan_prefetch(of->made->device, &of->problem, &options), ANNULUS_UNSUPPORTED,
              "only annulus_plan_create takes a selection");
  CHECK_OK(annulus_plan_destroy(plan));
}

void test_selection(void) {
  annulus_device* device = sample_open();
  sample* made = malloc(sizeof *made);
  run* of = malloc(sizeof *of);
  sample_make(made, device);
  prepare(of, made);
  chooses(of);
  recall(of);
  importance(of);
  refused(of);
  CHECK_OK(annulus_device_close(device));
  free(of);
  free(made);
}
