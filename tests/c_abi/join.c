// Joining partial answers over two ranks, gathering the queries of their heads, and merging states.

#include <annulus/c_ring.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "c_abi/check.h"
#include "c_abi/ranks.h"

enum { kJoinedHeads = 2, kJoinedDim = 8, kJoinedElements = kJoinedHeads * kJoinedDim };

static annulus_communicator_id the_id;

static void* put(annulus_device* device, const void* data, size_t bytes) {
  void* memory = NULL;
  CHECK_OK(annulus_device_allocate(device, bytes, &memory));
  CHECK_OK(annulus_device_copy_to_device(device, memory, data, bytes));
  return memory;
}

// O of the two ranks is 1 and 2 with equal weights. The sink of head 1 has the weight of both
// together.
static void joins(annulus_device* device, annulus_communicator* ranks, int rank) {
  annulus_join_problem problem = ANNULUS_JOIN_PROBLEM_INIT;
  annulus_join_plan_info info = ANNULUS_JOIN_PLAN_INFO_INIT;
  annulus_join_operands operands = ANNULUS_JOIN_OPERANDS_INIT;
  annulus_join_plan* plan = NULL;
  const float lse[kJoinedHeads] = {3, 3};
  const float sinks[kJoinedHeads] = {-INFINITY, 3.0f + 0.693147181f};
  uint16_t o[kJoinedElements], got[kJoinedDim];
  size_t bytes = 0;
  void* workspace = NULL;
  int i = 0, differ = 0;
  for (i = 0; i < kJoinedElements; ++i) o[i] = rank == 0 ? 0x3f80 : 0x4000;
  problem.heads = kJoinedHeads;
  problem.dim_v = kJoinedDim;
  problem.max_rows = 1;
  problem.slices = ANNULUS_JOIN_HEADS;
  problem.sink_logits = 1;
  CHECK_OK(annulus_join_problem_validate(&problem));
  CHECK_OK(annulus_join_plan_create(device, ranks, &problem, &plan));
  CHECK_OK(annulus_join_plan_get_info(plan, &info));
  CHECK(info.rank == rank && info.ranks == 2 && info.exchanges == 1 && info.bytes_sent > 0);
  CHECK(strstr(info.reason, "one exchange") != NULL);
  CHECK_OK(annulus_join_plan_workspace_bytes(plan, &bytes));
  CHECK_OK(annulus_device_allocate(device, bytes, &workspace));
  operands.rows = 1;
  operands.o = put(device, o, sizeof o);
  operands.lse = put(device, lse, sizeof lse);
  operands.sink_logits = put(device, sinks, sizeof sinks);
  operands.o_strides.row = kJoinedElements;
  operands.o_strides.head = kJoinedDim;
  operands.lse_strides.row = kJoinedHeads;
  operands.lse_strides.head = 1;
  operands.joined_o_strides.row = operands.joined_o_strides.head = kJoinedDim;
  CHECK_FAILS(annulus_join_plan_run(plan, NULL, &operands, workspace), ANNULUS_INVALID_ARGUMENT,
              "joined O is null");
  operands.joined_o = put(device, o, kJoinedDim * 2);
  CHECK_OK(annulus_join_plan_run(plan, NULL, &operands, workspace));
  CHECK_OK(annulus_device_synchronize(device));
  CHECK_OK(annulus_device_copy_to_host(device, got, operands.joined_o, sizeof got));
  // The mean is 1.5, and the sink halves it.
  for (i = 0; i < kJoinedDim; ++i) differ += got[i] != (rank == 0 ? 0x3fc0 : 0x3f40);
  CHECK(differ == 0);
  CHECK_OK(annulus_join_plan_destroy(plan));
  CHECK_FAILS(annulus_join_plan_run(plan, NULL, &operands, workspace), ANNULUS_INVALID_ARGUMENT,
              "the join plan was given back already");
  problem.form = 3;
  CHECK_FAILS(annulus_join_problem_validate(&problem), ANNULUS_INVALID_ARGUMENT, "form is 3");
}

static void gathers(annulus_device* device, annulus_communicator* ranks, int rank) {
  annulus_gather_problem problem = ANNULUS_GATHER_PROBLEM_INIT;
  annulus_gather_operands operands = ANNULUS_GATHER_OPERANDS_INIT;
  annulus_gather_plan* plan = NULL;
  uint16_t q[kJoinedDim], got[kJoinedElements] = {0};
  size_t bytes = 0;
  void* workspace = NULL;
  int i = 0, differ = 0;
  for (i = 0; i < kJoinedDim; ++i) q[i] = (uint16_t)(100 * rank + i);
  problem.heads = kJoinedHeads;
  problem.dim = 12;
  problem.max_rows = 1;
  CHECK_FAILS(annulus_gather_plan_create(device, ranks, &problem, &plan), ANNULUS_UNSUPPORTED,
              "is 12");
  problem.dim = kJoinedDim;
  CHECK_OK(annulus_gather_plan_create(device, ranks, &problem, &plan));
  CHECK_OK(annulus_gather_plan_workspace_bytes(plan, &bytes));
  CHECK_OK(annulus_device_allocate(device, bytes, &workspace));
  operands.rows = 1;
  operands.q = put(device, q, sizeof q);
  operands.gathered = put(device, got, sizeof got);
  operands.q_strides.row = operands.q_strides.head = kJoinedDim;
  operands.gathered_strides.row = kJoinedElements;
  operands.gathered_strides.head = kJoinedDim;
  CHECK_OK(annulus_gather_plan_run(plan, NULL, &operands, workspace));
  CHECK_OK(annulus_device_synchronize(device));
  CHECK_OK(annulus_device_copy_to_host(device, got, operands.gathered, sizeof got));
  for (i = 0; i < kJoinedElements; ++i) {
    differ += got[i] != 100 * (i / kJoinedDim) + i % kJoinedDim;
  }
  CHECK(differ == 0);
  CHECK_OK(annulus_gather_plan_destroy(plan));
}

// Two states with acc 2 and 6 and l 1 and 3 give acc 8 and l 4.
static void merges_states(annulus_device* device) {
  annulus_merge_problem problem = ANNULUS_MERGE_PROBLEM_INIT;
  annulus_merge_operands operands = ANNULUS_MERGE_OPERANDS_INIT;
  annulus_merge_input inputs[2];
  annulus_merge_plan* plan = NULL;
  float acc[kJoinedDim], m = 1, l = 0;
  int input = 0, i = 0, differ = 0;
  problem.dim_v = kJoinedDim;
  problem.max_rows = 1;
  problem.form = ANNULUS_PARTIAL_STATES;
  problem.carry_out = 1;
  CHECK_OK(annulus_merge_plan_create(device, &problem, &plan));
  memset(inputs, 0, sizeof inputs);
  for (input = 0; input < 2; ++input) {
    for (i = 0; i < kJoinedDim; ++i) acc[i] = input == 0 ? 2.0f : 6.0f;
    l = input == 0 ? 1.0f : 3.0f;
    inputs[input].state.acc = put(device, acc, sizeof acc);
    inputs[input].state.m = put(device, &m, sizeof m);
    inputs[input].state.l = put(device, &l, sizeof l);
  }
  operands.inputs = inputs;
  CHECK_FAILS(annulus_merge_plan_run(plan, NULL, &operands), ANNULUS_INVALID_ARGUMENT,
              "state.acc is null");
  operands.state = inputs[0].state;
  CHECK_OK(annulus_merge_plan_run(plan, NULL, &operands));
  CHECK_OK(annulus_device_copy_to_host(device, acc, operands.state.acc, sizeof acc));
  CHECK_OK(annulus_device_copy_to_host(device, &l, operands.state.l, sizeof l));
  CHECK_OK(annulus_device_copy_to_host(device, &m, operands.state.m, sizeof m));
  for (i = 0; i < kJoinedDim; ++i) differ += acc[i] != 8.0f;
  CHECK(differ == 0 && l == 4.0f && m == 1.0f);
  CHECK_OK(annulus_merge_plan_destroy(plan));
}

static void one_rank(int rank) {
  annulus_device* device = ranks_open(rank);
  annulus_communicator* ranks = NULL;
  CHECK_OK(annulus_communicator_open(device, &the_id, 2, rank, NULL, &ranks));
  joins(device, ranks, rank);
  gathers(device, ranks, rank);
  if (rank == 0) merges_states(device);
  CHECK_OK(annulus_communicator_destroy(ranks));
  CHECK_OK(annulus_device_close(device));
}

void test_join(void) {
  annulus_device* device = ranks_open(0);
  annulus_join_plan* plan = NULL;
  int64_t begin = 0, end = 0;
  CHECK_OK(annulus_join_slice(7, 3, 1, &begin, &end));
  CHECK(begin == 2 && end == 4);
  CHECK_FAILS(annulus_join_slice(7, 3, 3, &begin, &end), ANNULUS_INVALID_ARGUMENT,
              "give 0 or more rows");
  CHECK_FAILS(annulus_join_slice(7, 3, 1, NULL, &end), ANNULUS_INVALID_ARGUMENT, "begin is null");
  CHECK_FAILS(annulus_join_plan_create(device, NULL, NULL, &plan), ANNULUS_INVALID_ARGUMENT,
              "the communicator is null");
  CHECK_OK(annulus_communicator_make_id(device, &the_id));
  CHECK_OK(annulus_device_close(device));
  ranks_start(one_rank, 2);
}
