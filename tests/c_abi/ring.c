// Rings of ranks in this process: the answer of one device, and rejected input.

#define _POSIX_C_SOURCE 200809L

#include <annulus/c_ring.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include <annulus/c_tools.h>
#include "c_abi/check.h"
#include "c_abi/sample.h"

enum { kRanks = 3 };

// Uneven pieces of the sample. Each rank holds a piece of the whole tensor.
static const annulus_segment kPieces[kRanks] = {{0, 7}, {7, 20}, {27, 13}};

typedef struct sample_ring {
  const sample* made;
  annulus_device* devices[kRanks];
  annulus_shard shards[kRanks];
  annulus_ring_options options;
  annulus_problem problem;
  annulus_ring* ring;
  annulus_operands operands[kRanks];
  annulus_ring_call calls[kRanks];
} sample_ring;

static void make(sample_ring* ring, const sample* made) {
  const annulus_ring_options options = ANNULUS_RING_OPTIONS_INIT;
  const annulus_ring_call call = ANNULUS_RING_CALL_INIT;
  int rank = 0;
  memset(ring, 0, sizeof *ring);
  ring->made = made;
  ring->options = options;
  ring->options.shards = ring->shards;
  ring->options.shard_count = kRanks;
  ring->problem = made->problem;
  ring->problem.pattern = "causal";
  for (rank = 0; rank < kRanks; ++rank) {
    ring->devices[rank] = made->device;
    ring->shards[rank].q = ring->shards[rank].k = &kPieces[rank];
    ring->shards[rank].q_count = ring->shards[rank].k_count = 1;
  }
  CHECK_OK(annulus_ring_create(ring->devices, kRanks, &ring->problem, &ring->options, &ring->ring));
  for (rank = 0; rank < kRanks; ++rank) {
    const int64_t q_offset = kPieces[rank].start * kHeads * kDim * 2;
    const int64_t k_offset = kPieces[rank].start * kKvHeads * kDim * 2;
    annulus_ring_rank info = ANNULUS_RING_RANK_INIT;
    annulus_operands* operands = &ring->operands[rank];
    CHECK_OK(annulus_ring_get_rank(ring->ring, (size_t)rank, &info));
    CHECK(info.rows_q == kPieces[rank].length && info.rows_k == kPieces[rank].length);
    CHECK(info.shard.q_count == 1 && info.shard.q[0].start == kPieces[rank].start);
    CHECK(info.shard.k_count == 1 && info.shard.k[0].length == kPieces[rank].length);
    CHECK(info.launches == (rank > 0 ? 2 : 1));  // causal: its own keys and the keys before
    CHECK(strlen(info.device) > 4);
    CHECK(info.predicted_micros > 0);
    // A row's tiles are computed from its number. A list describes the packed rows.
    CHECK(info.device_bytes == (rank < kRanks - 1 ? 8 : 0));
    *operands = made->operands;
    operands->q = (const char*)operands->q + q_offset;
    operands->o = (char*)operands->o + q_offset;
    operands->k = (const char*)operands->k + k_offset;
    operands->v = (const char*)operands->v + k_offset;
    ring->calls[rank] = call;
    ring->calls[rank].operands = operands;
    CHECK_OK(annulus_device_allocate(made->device, (size_t)info.workspace_bytes,
                                     &ring->calls[rank].workspace));
  }
}

static void answers(sample_ring* ring) {
  annulus_ring_info info = ANNULUS_RING_INFO_INIT;
  CHECK_OK(annulus_ring_get_info(ring->ring, &info));
  CHECK(info.ranks == kRanks && info.bytes_sent > 0 && info.bytes_sent < info.bytes_plain_ring);
  CHECK(strlen(info.kernel) > 0 && strlen(info.config) > 0);
  CHECK(info.route == ANNULUS_ROUTE_DIRECT && strstr(info.route_reason, "direct: ") != NULL);
  CHECK(info.rounds == 1 && info.messages == 3);
  CHECK(info.bytes_needed == info.bytes_sent && info.bytes_relayed == 0);
  CHECK(strstr(info.schedule, "\n") != NULL);
  sample_clear(ring->made);
  CHECK_OK(annulus_ring_run(ring->ring, ring->calls, kRanks));
  CHECK(sample_error(ring->made, sample_causal, NULL) < 1e-2);
}

// O of each rank overwrites its Q.
static void in_place(sample_ring* ring) {
  annulus_operands operands[kRanks];
  annulus_ring_call calls[kRanks];
  const size_t bytes = kRows * kHeads * kDim * 2;
  void* q = malloc(bytes);
  int rank = 0;
  CHECK_OK(annulus_device_copy_to_host(ring->made->device, q, ring->made->operands.q, bytes));
  CHECK_OK(annulus_device_copy_to_device(ring->made->device, ring->made->operands.o, q, bytes));
  free(q);
  memcpy(calls, ring->calls, sizeof calls);
  for (rank = 0; rank < kRanks; ++rank) {
    operands[rank] = ring->operands[rank];
    operands[rank].q = operands[rank].o;
    calls[rank].operands = &operands[rank];
  }
  CHECK_OK(annulus_ring_run(ring->ring, calls, kRanks));
  CHECK(sample_error(ring->made, sample_causal, NULL) < 1e-2);
}

// A call struct as a later version might define it.
typedef struct newer_call {
  annulus_ring_call known;
  int64_t added;
} newer_call;

static void call_sizes(sample_ring* ring) {
  newer_call newer[kRanks];
  annulus_ring_call calls[kRanks];
  uint64_t older[kRanks][3];
  const size_t short_size = sizeof older[0];
  int rank = 0;
  memset(newer, 0, sizeof newer);
  memcpy(calls, ring->calls, sizeof calls);
  for (rank = 0; rank < kRanks; ++rank) {
    newer[rank].known = ring->calls[rank];
    newer[rank].known.struct_size = sizeof newer[rank];
    memcpy(older[rank], &ring->calls[rank], short_size);
    memcpy(older[rank], &short_size, sizeof short_size);
  }
  sample_clear(ring->made);
  CHECK_OK(annulus_ring_run(ring->ring, &newer[0].known, kRanks));
  CHECK(sample_error(ring->made, sample_causal, NULL) < 1e-2);
  newer[1].added = 5;
  CHECK_FAILS(annulus_ring_run(ring->ring, &newer[0].known, kRanks), ANNULUS_UNSUPPORTED,
              "of annulus_ring_call is set");
  // The older version lacks the workspace.
  CHECK_FAILS(annulus_ring_run(ring->ring, (const annulus_ring_call*)(const void*)older, kRanks),
              ANNULUS_INVALID_ARGUMENT, "rank 0: the workspace at 0x0");
  calls[2].struct_size = 8;
  CHECK_FAILS(annulus_ring_run(ring->ring, calls, kRanks), ANNULUS_INVALID_ARGUMENT,
              "struct_size of call 2 is 8, but struct_size of call 0 is 32");
  calls[0].struct_size = 0;
  CHECK_FAILS(annulus_ring_run(ring->ring, calls, kRanks), ANNULUS_INVALID_ARGUMENT,
              "struct_size of annulus_ring_call is 0");
}

static void wrong_calls(sample_ring* ring) {
  annulus_ring_call calls[kRanks];
  annulus_operands operands = ring->operands[1];
  memcpy(calls, ring->calls, sizeof calls);
  CHECK_FAILS(annulus_ring_run(ring->ring, NULL, kRanks), ANNULUS_INVALID_ARGUMENT, "is null");
  CHECK_FAILS(annulus_ring_run(ring->ring, calls, 2), ANNULUS_INVALID_ARGUMENT,
              "2 calls for a ring of 3 ranks");
  calls[1].operands = NULL;
  CHECK_FAILS(annulus_ring_run(ring->ring, calls, kRanks), ANNULUS_INVALID_ARGUMENT,
              "rank 1: annulus_operands is null");
  calls[1].operands = &operands;
  operands.q = NULL;
  CHECK_FAILS(annulus_ring_run(ring->ring, calls, kRanks), ANNULUS_INVALID_ARGUMENT,
              "rank 1: Q is null");
  calls[1] = ring->calls[1];
  calls[1].workspace = (char*)calls[1].workspace + 16;
  CHECK_FAILS(annulus_ring_run(ring->ring, calls, kRanks), ANNULUS_INVALID_ARGUMENT,
              "rank 1: the workspace");
}

static void refused(const sample_ring* ring, size_t ranks, const annulus_problem* problem,
                    const annulus_ring_options* options, annulus_status code, const char* part) {
  annulus_ring* none = NULL;
  CHECK_FAILS(annulus_ring_create(ring->devices, ranks, problem, options, &none), code, part);
  CHECK(none == NULL);
}

static void wrong_rings(sample_ring* ring) {
  const annulus_segment twice = {0, 40};
  annulus_ring_options options = ANNULUS_RING_OPTIONS_INIT;
  annulus_problem problem = ring->problem;
  annulus_device* kept = ring->devices[1];
  annulus_ring* none = NULL;
  const annulus_shard shard = ring->shards[1];
  refused(ring, 0, &problem, NULL, ANNULUS_INVALID_ARGUMENT, "a ring of 0 ranks");
  refused(ring, 5000, &problem, NULL, ANNULUS_INVALID_ARGUMENT, "a ring of 5000 ranks");
  refused(ring, kRanks, NULL, NULL, ANNULUS_INVALID_ARGUMENT, "annulus_problem is null");
  CHECK_FAILS(annulus_ring_create(NULL, kRanks, &problem, NULL, &none), ANNULUS_INVALID_ARGUMENT,
              "devices is null");
  CHECK_FAILS(annulus_ring_create(ring->devices, kRanks, &problem, NULL, NULL),
              ANNULUS_INVALID_ARGUMENT, "ring (where the handle goes) is null");
  options.sharding = 9;
  refused(ring, kRanks, &problem, &options, ANNULUS_INVALID_ARGUMENT, "sharding is 9");
  options.sharding = ANNULUS_ZIGZAG;
  options.multiple = -1;
  refused(ring, kRanks, &problem, &options, ANNULUS_INVALID_ARGUMENT, "-1");
  options.multiple = 0;
  options.route = 3;
  refused(ring, kRanks, &problem, &options, ANNULUS_INVALID_ARGUMENT, "route is 3");
  options.struct_size = 1;
  refused(ring, kRanks, &problem, &options, ANNULUS_INVALID_ARGUMENT, "annulus_ring_options");
  ring->shards[1].q = &twice;
  refused(ring, kRanks, &problem, &ring->options, ANNULUS_INVALID_ARGUMENT, "rank");
  ring->shards[1].q = NULL;
  refused(ring, kRanks, &problem, &ring->options, ANNULUS_INVALID_ARGUMENT, "q of a shard is null");
  ring->shards[1] = shard;
  ring->options.shard_count = kRanks - 1;
  refused(ring, kRanks, &problem, &ring->options, ANNULUS_INVALID_ARGUMENT,
          "shards has 2 entries, but 3 are read");
  ring->options.shard_count = kRanks;
  problem.carry_in = 1;
  refused(ring, kRanks, &problem, NULL, ANNULUS_UNSUPPORTED, "carry_in");
  problem.carry_in = 0;
  ring->devices[1] = NULL;
  refused(ring, kRanks, &problem, NULL, ANNULUS_INVALID_ARGUMENT, "the device is null");
  ring->devices[1] = (annulus_device*)ring->ring;
  refused(ring, kRanks, &problem, NULL, ANNULUS_INVALID_ARGUMENT, "is not a handle of type device");
  ring->devices[1] = kept;
}

static void wrong_handle(annulus_ring* handle, const sample_ring* ring, const char* part) {
  annulus_ring_info info = ANNULUS_RING_INFO_INIT;
  annulus_ring_rank rank = ANNULUS_RING_RANK_INIT;
  CHECK_FAILS(annulus_ring_get_info(handle, &info), ANNULUS_INVALID_ARGUMENT, part);
  CHECK_FAILS(annulus_ring_get_rank(handle, 0, &rank), ANNULUS_INVALID_ARGUMENT, part);
  CHECK_FAILS(annulus_ring_run(handle, ring->calls, kRanks), ANNULUS_INVALID_ARGUMENT, part);
  CHECK_FAILS(annulus_ring_destroy(handle), ANNULUS_INVALID_ARGUMENT, part);
}

// Each call succeeds, or is refused because another thread is inside.
static void* run_often(void* argument) {
  sample_ring* ring = argument;
  int run = 0;
  for (run = 0; run < 30; ++run) {
    const annulus_status status = annulus_ring_run(ring->ring, ring->calls, kRanks);
    if (status != ANNULUS_OK && strstr(annulus_last_error(), "another thread") == NULL) {
      return ring;
    }
  }
  return NULL;
}

static void two_threads(sample_ring* ring) {
  pthread_t threads[2];
  void* wrong = NULL;
  int i = 0;
  sample_clear(ring->made);
  for (i = 0; i < 2; ++i) CHECK(pthread_create(&threads[i], NULL, run_often, ring) == 0);
  for (i = 0; i < 2; ++i) {
    CHECK(pthread_join(threads[i], &wrong) == 0);
    CHECK(wrong == NULL);
  }
  CHECK(sample_error(ring->made, sample_causal, NULL) < 1e-2);
}

static void zigzag(const sample_ring* ring) {
  annulus_ring_options options = ANNULUS_RING_OPTIONS_INIT;
  annulus_ring_rank rank = ANNULUS_RING_RANK_INIT;
  annulus_ring* made = NULL;
  options.sharding = ANNULUS_ZIGZAG;
  options.multiple = 5;
  CHECK_OK(annulus_ring_create(ring->devices, 2, &ring->problem, &options, &made));
  CHECK_OK(annulus_ring_get_rank(made, 0, &rank));
  CHECK(rank.shard.q_count == 2 && rank.shard.q[0].start == 0 && rank.shard.q[1].start == 30);
  CHECK_FAILS(annulus_ring_get_rank(made, 2, &rank), ANNULUS_INVALID_ARGUMENT,
              "rank 2 of a ring of 2");
  CHECK_FAILS(annulus_ring_get_rank(made, 0, NULL), ANNULUS_INVALID_ARGUMENT,
              "annulus_ring_rank is null");
  CHECK_FAILS(annulus_ring_get_info(made, NULL), ANNULUS_INVALID_ARGUMENT,
              "annulus_ring_info is null");
  CHECK_OK(annulus_ring_destroy(made));
}

// The problem that is tuned for a ring: a launch with the most rows of a rank.
static void step_of(const sample_ring* ring) {
  annulus_ring_options options = ANNULUS_RING_OPTIONS_INIT;
  annulus_problem step = ANNULUS_PROBLEM_INIT;
  options.sharding = ANNULUS_ZIGZAG;
  options.multiple = 5;
  CHECK_OK(annulus_ring_get_step(2, &ring->problem, &options, &step));
  CHECK(step.seq_q < ring->problem.seq_q && 2 * step.seq_q >= ring->problem.seq_q);
  CHECK(step.heads == ring->problem.heads && step.pattern == ring->problem.pattern);
  CHECK(step.carry_in == 1 && step.carry_out == 1 && step.want_lse == 0);
  CHECK_OK(annulus_ring_get_step(1, &ring->problem, NULL, &step));
  CHECK(step.seq_q == ring->problem.seq_q && step.carry_in == 0 && step.carry_out == 0);
  CHECK_FAILS(annulus_ring_get_step(0, &ring->problem, NULL, &step), ANNULUS_INVALID_ARGUMENT,
              "a ring of 0 ranks");
  CHECK_FAILS(annulus_ring_get_step(2, NULL, NULL, &step), ANNULUS_INVALID_ARGUMENT,
              "annulus_problem is null");
  CHECK_FAILS(annulus_ring_get_step(2, &ring->problem, NULL, NULL), ANNULUS_INVALID_ARGUMENT,
              "annulus_problem is null");
}

// Options for the plans in a ring, and its picture.
static void planned_and_drawn(const sample_ring* ring) {
  annulus_ring_options options = ANNULUS_RING_OPTIONS_INIT;
  annulus_plan_options plans = ANNULUS_PLAN_OPTIONS_INIT;
  annulus_ring_info info = ANNULUS_RING_INFO_INIT;
  annulus_ring* made = NULL;
  const char* svg = NULL;
  const char* again = NULL;
  char config[128];
  CHECK_OK(annulus_ring_get_info(ring->ring, &info));
  CHECK(strlen(info.config) < sizeof config);
  strcpy(config, info.config);
  options.plans = &plans;
  plans.config = config;
  options.route = ANNULUS_ROUTE_RING;
  CHECK_OK(annulus_ring_create(ring->devices, 2, &ring->problem, &options, &made));
  CHECK_OK(annulus_ring_get_info(made, &info));
  CHECK(info.route == ANNULUS_ROUTE_RING);
  CHECK(strcmp(info.config, config) == 0);
  CHECK_OK(annulus_ring_get_picture(made, &svg));
  CHECK(strstr(svg, "<svg") != NULL);
  CHECK_OK(annulus_ring_get_picture(made, &again));
  CHECK(svg == again);
  CHECK_FAILS(annulus_ring_get_picture(made, NULL), ANNULUS_INVALID_ARGUMENT, "svg");
  CHECK_OK(annulus_ring_destroy(made));
  CHECK_FAILS(annulus_ring_get_picture(made, &svg), ANNULUS_INVALID_ARGUMENT, "the ring was");
  options.config = config;
  refused(ring, 2, &ring->problem, &options, ANNULUS_INVALID_ARGUMENT, "give one");
  plans.config = NULL;
  plans.kv_splits = 4;
  refused(ring, 2, &ring->problem, &options, ANNULUS_UNSUPPORTED, "kv_splits");
  plans.struct_size = 4;
  refused(ring, 2, &ring->problem, &options, ANNULUS_INVALID_ARGUMENT,
          "struct_size of annulus_plan_options is 4");
}

void test_ring(void) {
  annulus_device* device = sample_open();
  sample* made = malloc(sizeof *made);
  sample_ring* ring = malloc(sizeof *ring);
  sample_make(made, device);
  make(ring, made);
  answers(ring);
  in_place(ring);
  call_sizes(ring);
  wrong_calls(ring);
  wrong_rings(ring);
  two_threads(ring);
  zigzag(ring);
  step_of(ring);
  planned_and_drawn(ring);
  wrong_handle(NULL, ring, "the ring is null");
  wrong_handle((annulus_ring*)device, ring, "is not a handle of type ring");
  CHECK_OK(annulus_ring_destroy(ring->ring));
  wrong_handle(ring->ring, ring, "the ring was given back already");
  CHECK_OK(annulus_device_close(device));
  free(ring);
  free(made);
}
