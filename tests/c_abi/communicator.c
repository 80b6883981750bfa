// Ranks that exchange bytes, and one rank of a ring over them.

#define _POSIX_C_SOURCE 200809L

#include <annulus/c_communicator.h>
#include <annulus/c_ring.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "c_abi/check.h"
#include "c_abi/ranks.h"
#include "c_abi/sample.h"

static void refused_handle(annulus_communicator* handle, annulus_device* device, const char* part) {
  annulus_communicator_info info = ANNULUS_COMMUNICATOR_INFO_INIT;
  annulus_problem problem = ANNULUS_PROBLEM_INIT;
  annulus_ring_rank_plan* plan = NULL;
  const char* reason = NULL;
  CHECK_FAILS(annulus_communicator_get_info(handle, &info), ANNULUS_INVALID_ARGUMENT, part);
  CHECK_FAILS(annulus_communicator_exchange(handle, NULL, NULL, 0, NULL, 0),
              ANNULUS_INVALID_ARGUMENT, part);
  CHECK_FAILS(annulus_communicator_get_reason(handle, &reason), ANNULUS_INVALID_ARGUMENT, part);
  CHECK_FAILS(annulus_communicator_give_up(handle, "no"), ANNULUS_INVALID_ARGUMENT, part);
  CHECK_FAILS(annulus_ring_rank_plan_create(device, handle, &problem, NULL, &plan),
              ANNULUS_INVALID_ARGUMENT, part);
  CHECK_FAILS(annulus_communicator_destroy(handle), ANNULUS_INVALID_ARGUMENT, part);
}

// ---- Bytes

static annulus_communicator_id the_id;

static void wrong_messages(annulus_communicator* ranks, int rank, void* memory) {
  annulus_sent_bytes sent = {memory, 4, 1 - rank};
  annulus_received_bytes received = {NULL, 4, 1 - rank};
  CHECK_FAILS(annulus_communicator_exchange(ranks, NULL, &sent, 1, &received, 1),
              ANNULUS_INVALID_ARGUMENT, "is null");
  CHECK_FAILS(annulus_communicator_exchange(ranks, NULL, NULL, 1, NULL, 0),
              ANNULUS_INVALID_ARGUMENT, "sends is null");
  CHECK_FAILS(annulus_communicator_exchange(ranks, NULL, NULL, 0, NULL, 1),
              ANNULUS_INVALID_ARGUMENT, "receives is null");
  sent.to = rank;
  CHECK_FAILS(annulus_communicator_exchange(ranks, NULL, &sent, 1, NULL, 0),
              ANNULUS_INVALID_ARGUMENT, "peers are the other ranks");
  sent.to = INT64_C(1) << 32 | (1 - rank);
  CHECK_FAILS(annulus_communicator_exchange(ranks, NULL, &sent, 1, NULL, 0),
              ANNULUS_INVALID_ARGUMENT, "peers are the other ranks");
  CHECK_OK(annulus_communicator_exchange(ranks, NULL, NULL, 0, NULL, 0));
}

static void exchange(annulus_communicator* ranks, annulus_device* device, int rank) {
  const int own = 30 + rank;
  int got = 0;
  void* memory = NULL;
  annulus_sent_bytes sent = {NULL, sizeof own, 1 - rank};
  annulus_received_bytes received = {NULL, sizeof own, 1 - rank};
  CHECK_OK(annulus_device_allocate(device, 512, &memory));
  CHECK_OK(annulus_device_copy_to_device(device, memory, &own, sizeof own));
  sent.from = memory;
  received.to = (char*)memory + 256;
  CHECK_OK(annulus_communicator_exchange(ranks, NULL, &sent, 1, &received, 1));
  CHECK_OK(annulus_device_synchronize(device));
  CHECK_OK(annulus_device_copy_to_host(device, &got, received.to, sizeof got));
  CHECK(got == 31 - rank);
  wrong_messages(ranks, rank, memory);
}

static void given_up(annulus_communicator* ranks) {
  const char* reason = "";
  const char* again = NULL;
  CHECK_OK(annulus_communicator_get_reason(ranks, &reason));
  CHECK(reason == NULL);
  CHECK_FAILS(annulus_communicator_give_up(ranks, NULL), ANNULUS_INVALID_ARGUMENT,
              "reason is null");
  CHECK_FAILS(annulus_communicator_get_reason(ranks, NULL), ANNULUS_INVALID_ARGUMENT,
              "reason (where the text goes) is null");
  CHECK_OK(annulus_communicator_give_up(ranks, "enough"));
  CHECK_OK(annulus_communicator_give_up(ranks, "once more"));
  CHECK_OK(annulus_communicator_get_reason(ranks, &reason));
  CHECK_OK(annulus_communicator_get_reason(ranks, &again));
  CHECK(reason != NULL && strcmp(reason, "enough") == 0 && again == reason);
  CHECK_FAILS(annulus_communicator_exchange(ranks, NULL, NULL, 0, NULL, 0), ANNULUS_COMMUNICATION,
              "was given up: enough");
}

static void bytes_by_id(int rank) {
  annulus_device* device = ranks_open(rank);
  annulus_communicator_info info = ANNULUS_COMMUNICATOR_INFO_INIT;
  annulus_communicator* ranks = NULL;
  CHECK_OK(annulus_communicator_open(device, &the_id, 2, rank, NULL, &ranks));
  CHECK_OK(annulus_communicator_get_info(ranks, &info));
  CHECK(info.rank == rank && info.ranks == 2 && info.blocking == 0 && info.borrowed == 0);
  CHECK(info.simulated == 1 && info.nccl_version >= 21400 && strstr(info.nccl, " at ") != NULL);
  CHECK_FAILS(annulus_communicator_get_info(ranks, NULL), ANNULUS_INVALID_ARGUMENT,
              "annulus_communicator_info is null");
  exchange(ranks, device, rank);
  given_up(ranks);
  CHECK_OK(annulus_communicator_destroy(ranks));
  refused_handle(ranks, device, "the communicator was given back already");
  CHECK_OK(annulus_device_close(device));
}

// By a rendezvous, which ends before the communicator; and blocking.
static void bytes_by_meeting(int rank) {
  annulus_device* device = ranks_open(rank);
  annulus_rendezvous* meeting = ranks_meet("bytes", rank, 2);
  annulus_communicator_options options = ANNULUS_COMMUNICATOR_OPTIONS_INIT;
  annulus_communicator_info info = ANNULUS_COMMUNICATOR_INFO_INIT;
  annulus_communicator* ranks = NULL;
  options.blocking = 1;
  CHECK_FAILS(annulus_communicator_meet(device, NULL, NULL, &ranks), ANNULUS_INVALID_ARGUMENT,
              "the rendezvous is null");
  CHECK_FAILS(annulus_communicator_meet(NULL, meeting, NULL, &ranks), ANNULUS_INVALID_ARGUMENT,
              "the device is null");
  CHECK_FAILS(annulus_communicator_meet(device, meeting, NULL, NULL), ANNULUS_INVALID_ARGUMENT,
              "communicator (where the handle goes)");
  CHECK_OK(annulus_communicator_meet(device, meeting, &options, &ranks));
  CHECK_OK(annulus_rendezvous_destroy(meeting));
  CHECK_OK(annulus_communicator_get_info(ranks, &info));
  CHECK(info.blocking == 1);
  exchange(ranks, device, rank);
  CHECK_OK(annulus_communicator_destroy(ranks));
  CHECK_OK(annulus_device_close(device));
}

// Rank 1 does not come to a group, and rank 0 says so by the deadline.
static pthread_barrier_t late;

static void one_is_late(int rank) {
  annulus_device* device = ranks_open(rank);
  annulus_communicator_options options = ANNULUS_COMMUNICATOR_OPTIONS_INIT;
  annulus_communicator* ranks = NULL;
  annulus_sent_bytes sent = {NULL, 4, 1 - rank};
  const char* reason = NULL;
  void* memory = NULL;
  options.deadline_ms = 200;
  CHECK_OK(annulus_communicator_open(device, &the_id, 2, rank, &options, &ranks));
  CHECK_OK(annulus_device_allocate(device, 8, &memory));
  sent.from = memory;
  if (rank == 0) {
    CHECK_FAILS(annulus_communicator_exchange(ranks, NULL, &sent, 1, NULL, 0),
                ANNULUS_COMMUNICATION, "waited 200 ms");
    CHECK_OK(annulus_communicator_get_reason(ranks, &reason));
    CHECK(reason != NULL && strstr(reason, "waited 200 ms") != NULL);
    CHECK_FAILS(annulus_communicator_exchange(ranks, NULL, &sent, 1, NULL, 0),
                ANNULUS_COMMUNICATION, "was given up");
  }
  pthread_barrier_wait(&late);
  CHECK_OK(annulus_communicator_destroy(ranks));
  CHECK_OK(annulus_device_close(device));
}

// A handle is given back while another thread is inside a call with it.
typedef struct inside {
  annulus_communicator* ranks;
  annulus_sent_bytes sent;
  pthread_barrier_t begins;
} inside;

static void* send_to_nobody(void* argument) {
  inside* call = argument;
  pthread_barrier_wait(&call->begins);
  CHECK_FAILS(annulus_communicator_exchange(call->ranks, NULL, &call->sent, 1, NULL, 0),
              ANNULUS_COMMUNICATION, "waited 300 ms");
  return NULL;
}

static void given_back_meanwhile(int rank) {
  annulus_device* device = ranks_open(rank);
  annulus_communicator_options options = ANNULUS_COMMUNICATOR_OPTIONS_INIT;
  const struct timespec until_inside = {0, 100000000};
  pthread_t thread;
  inside call;
  void* memory = NULL;
  options.deadline_ms = 300;
  CHECK_OK(annulus_communicator_open(device, &the_id, 2, rank, &options, &call.ranks));
  CHECK_OK(annulus_device_allocate(device, 8, &memory));
  if (rank == 0) {
    call.sent.from = memory;
    call.sent.bytes = 8;
    call.sent.to = 1;
    CHECK(pthread_barrier_init(&call.begins, NULL, 2) == 0);
    CHECK(pthread_create(&thread, NULL, send_to_nobody, &call) == 0);
    pthread_barrier_wait(&call.begins);
    nanosleep(&until_inside, NULL);
    CHECK_FAILS(annulus_communicator_exchange(call.ranks, NULL, NULL, 0, NULL, 0),
                ANNULUS_INVALID_ARGUMENT, "another thread is inside");
    CHECK_FAILS(annulus_communicator_give_up(call.ranks, "meanwhile"), ANNULUS_INVALID_ARGUMENT,
                "another thread is inside");
  }
  CHECK_OK(annulus_communicator_destroy(call.ranks));
  refused_handle(call.ranks, device, "the communicator was given back already");
  if (rank == 0) {
    CHECK(pthread_join(thread, NULL) == 0);
    pthread_barrier_destroy(&call.begins);
  }
  pthread_barrier_wait(&late);
  CHECK_OK(annulus_device_close(device));
}

static void wrong_communicators(void) {
  annulus_device* device = ranks_open(0);
  annulus_communicator_options options = ANNULUS_COMMUNICATOR_OPTIONS_INIT;
  annulus_communicator* none = NULL;
#define REFUSED(call, part) CHECK_FAILS(call, ANNULUS_INVALID_ARGUMENT, part)
  REFUSED(annulus_communicator_make_id(NULL, &the_id), "the device is null");
  REFUSED(annulus_communicator_make_id(device, NULL), "id (where the id goes)");
  REFUSED(annulus_communicator_open(NULL, &the_id, 1, 0, NULL, &none), "the device is null");
  REFUSED(annulus_communicator_open(device, NULL, 1, 0, NULL, &none), "id is null");
  REFUSED(annulus_communicator_open(device, &the_id, 1, 0, NULL, NULL),
          "communicator (where the handle goes)");
  REFUSED(annulus_communicator_open(device, &the_id, 2, 2, NULL, &none), "rank 2 of 2");
  REFUSED(annulus_communicator_open(device, &the_id, 0, 0, NULL, &none), "rank 0 of 0");
  options.blocking = 3;
  REFUSED(annulus_communicator_open(device, &the_id, 1, 0, &options, &none), "blocking is 3");
  options.blocking = 0;
  options.deadline_ms = -1;
  REFUSED(annulus_communicator_open(device, &the_id, 1, 0, &options, &none), "deadline_ms is -1");
  options.deadline_ms = 0;
  options.planning_ms = INT64_MIN;
  REFUSED(annulus_communicator_open(device, &the_id, 1, 0, &options, &none), "planning_ms is -9");
  options.struct_size = 0;
  REFUSED(annulus_communicator_open(device, &the_id, 1, 0, &options, &none),
          "struct_size of annulus_communicator_options");
  REFUSED(annulus_communicator_borrow(device, NULL, NULL, &none), "the ncclComm_t is null");
  REFUSED(annulus_communicator_borrow(NULL, device, NULL, &none), "the device is null");
  REFUSED(annulus_communicator_borrow(device, device, NULL, NULL),
          "communicator (where the handle goes)");
#undef REFUSED
  CHECK(none == NULL);
  refused_handle(NULL, device, "the communicator is null");
  refused_handle((annulus_communicator*)device, device, "is no communicator");
  CHECK_OK(annulus_device_close(device));
}

// ---- One rank of a ring

static const annulus_segment kHalves[2] = {{0, 13}, {13, kRows - 13}};

typedef struct ring_of_two {
  sample* made;  // of this rank's device
  annulus_shard shards[2];
  annulus_ring_options options;
  annulus_problem problem;
  annulus_operands operands;
  annulus_ring_call call;
} ring_of_two;

static void make(ring_of_two* ring, sample* made, int rank) {
  const annulus_ring_options options = ANNULUS_RING_OPTIONS_INIT;
  const annulus_ring_call call = ANNULUS_RING_CALL_INIT;
  const int64_t first = kHalves[rank].start * kDim * 2;
  int one = 0;
  ring->made = made;
  ring->options = options;
  for (one = 0; one < 2; ++one) {
    ring->shards[one].q = ring->shards[one].k = &kHalves[one];
    ring->shards[one].q_count = ring->shards[one].k_count = 1;
  }
  ring->options.shards = ring->shards;
  ring->problem = made->problem;
  ring->problem.pattern = "causal";
  ring->operands = made->operands;
  ring->operands.q = (const char*)made->operands.q + first * kHeads;
  ring->operands.o = (char*)made->operands.o + first * kHeads;
  ring->operands.k = (const char*)made->operands.k + first * kKvHeads;
  ring->operands.v = (const char*)made->operands.v + first * kKvHeads;
  ring->call = call;
  ring->call.operands = &ring->operands;
}

static void refused_plan(annulus_ring_rank_plan* plan, const annulus_ring_call* call,
                         const char* part) {
  annulus_ring_info info = ANNULUS_RING_INFO_INIT;
  annulus_ring_rank rank = ANNULUS_RING_RANK_INIT;
  CHECK_FAILS(annulus_ring_rank_plan_get_info(plan, &info), ANNULUS_INVALID_ARGUMENT, part);
  CHECK_FAILS(annulus_ring_rank_plan_get_rank(plan, &rank), ANNULUS_INVALID_ARGUMENT, part);
  CHECK_FAILS(annulus_ring_rank_plan_run(plan, call), ANNULUS_INVALID_ARGUMENT, part);
  CHECK_FAILS(annulus_ring_rank_plan_destroy(plan), ANNULUS_INVALID_ARGUMENT, part);
}

static void told(annulus_ring_rank_plan* plan, int rank) {
  annulus_ring_info info = ANNULUS_RING_INFO_INIT;
  annulus_ring_rank own = ANNULUS_RING_RANK_INIT;
  CHECK_OK(annulus_ring_rank_plan_get_info(plan, &info));
  CHECK(info.ranks == 2 && info.rounds == 1 && info.messages == 1);
  CHECK(info.route == ANNULUS_ROUTE_DIRECT && strlen(info.route_reason) > 0);
  CHECK(info.bytes_sent == 13 * kKvHeads * 2 * kDim * 2 && strlen(info.config) > 4);
  CHECK(strlen(info.schedule) > 0 && strlen(info.kernel) > 0);
  CHECK_OK(annulus_ring_rank_plan_get_rank(plan, &own));
  CHECK(own.rank == rank && own.rows_q == kHalves[rank].length);
  CHECK(own.shard.k_count == 1 && own.shard.k[0].start == kHalves[rank].start);
  CHECK(own.launches == 1 + rank && own.bytes_received == (rank == 0 ? 0 : info.bytes_sent));
  CHECK_FAILS(annulus_ring_rank_plan_get_info(plan, NULL), ANNULUS_INVALID_ARGUMENT,
              "annulus_ring_info is null");
  CHECK_FAILS(annulus_ring_rank_plan_get_rank(plan, NULL), ANNULUS_INVALID_ARGUMENT,
              "annulus_ring_rank is null");
}

// What is refused on all ranks before any of them has queued a message.
static void wrong_plans(annulus_device* device, annulus_communicator* ranks, ring_of_two* ring,
                        int rank) {
  annulus_ring_rank_plan* none = NULL;
  annulus_problem problem = ring->problem;
  CHECK_FAILS(annulus_ring_rank_plan_create(NULL, ranks, &problem, NULL, &none),
              ANNULUS_INVALID_ARGUMENT, "the device is null");
  CHECK_FAILS(annulus_ring_rank_plan_create(device, ranks, NULL, NULL, &none),
              ANNULUS_INVALID_ARGUMENT, "annulus_problem is null");
  CHECK_FAILS(annulus_ring_rank_plan_create(device, ranks, &problem, NULL, NULL),
              ANNULUS_INVALID_ARGUMENT, "plan (where the handle goes)");
  ring->options.route = 9;
  CHECK_FAILS(annulus_ring_rank_plan_create(device, ranks, &problem, &ring->options, &none),
              ANNULUS_INVALID_ARGUMENT, "route is 9");
  ring->options.route = ANNULUS_ROUTE_AUTO;
  // One rank differs, and both say so.
  if (rank == 1) problem.pattern = "dense";
  CHECK_FAILS(annulus_ring_rank_plan_create(device, ranks, &problem, &ring->options, &none),
              ANNULUS_INVALID_ARGUMENT, "rank 1");
  problem = ring->problem;
  if (rank == 0) problem.carry_in = 1;
  CHECK_FAILS(annulus_ring_rank_plan_create(device, ranks, &problem, &ring->options, &none),
              ANNULUS_UNSUPPORTED, "rank 0");
  CHECK(none == NULL);
}

static pthread_barrier_t answered;
static uint16_t whole_o[kRows * kHeads * kDim];

static void rank_of_two(int rank) {
  annulus_device* device = ranks_open(rank);
  annulus_communicator* ranks = NULL;
  annulus_ring_rank_plan* plan = NULL;
  annulus_ring_rank own = ANNULUS_RING_RANK_INIT;
  ring_of_two* ring = malloc(sizeof *ring);
  sample* made = malloc(sizeof *made);
  annulus_operands wrong;
  annulus_ring_call call;
  const size_t row = kHeads * kDim;
  sample_make(made, device);
  make(ring, made, rank);
  CHECK_OK(annulus_communicator_open(device, &the_id, 2, rank, NULL, &ranks));
  wrong_plans(device, ranks, ring, rank);
  CHECK_OK(annulus_ring_rank_plan_create(device, ranks, &ring->problem, &ring->options, &plan));
  // The plan keeps both.
  CHECK_OK(annulus_communicator_destroy(ranks));
  told(plan, rank);
  CHECK_OK(annulus_ring_rank_plan_get_rank(plan, &own));
  CHECK_OK(annulus_device_allocate(device, (size_t)own.workspace_bytes, &ring->call.workspace));
  call = ring->call;
  wrong = ring->operands;
  wrong.q = NULL;
  call.operands = &wrong;
  CHECK_FAILS(annulus_ring_rank_plan_run(plan, &call), ANNULUS_INVALID_ARGUMENT, "Q is null");
  CHECK_FAILS(annulus_ring_rank_plan_run(plan, NULL), ANNULUS_INVALID_ARGUMENT,
              "annulus_ring_call is null");
  call.operands = NULL;
  CHECK_FAILS(annulus_ring_rank_plan_run(plan, &call), ANNULUS_INVALID_ARGUMENT,
              "annulus_operands is null");
  sample_clear(made);
  CHECK_OK(annulus_ring_rank_plan_run(plan, &ring->call));
  CHECK_OK(annulus_ring_rank_plan_run(plan, &ring->call));
  CHECK_OK(annulus_device_synchronize(device));
  CHECK_OK(annulus_device_copy_to_host(device, whole_o + (size_t)kHalves[rank].start * row,
                                       ring->operands.o, (size_t)kHalves[rank].length * row * 2));
  pthread_barrier_wait(&answered);
  if (rank == 0) {
    // Both halves on one device, against the definition.
    CHECK_OK(annulus_device_copy_to_device(device, made->operands.o, whole_o, sizeof whole_o));
    CHECK(sample_error(made, sample_causal, NULL) < 1e-2);
  }
  pthread_barrier_wait(&answered);
  CHECK_OK(annulus_ring_rank_plan_destroy(plan));
  refused_plan(plan, &ring->call, "the plan of a rank was given back already");
  CHECK_OK(annulus_device_close(device));
  free(made);
  free(ring);
}

static void new_id(void) {
  annulus_device* device = ranks_open(0);
  CHECK_OK(annulus_communicator_make_id(device, &the_id));
  CHECK_OK(annulus_device_close(device));
}

void test_communicator(void) {
  const annulus_ring_call call = ANNULUS_RING_CALL_INIT;
  new_id();
  ranks_start(bytes_by_id, 2);
  ranks_start(bytes_by_meeting, 2);
  CHECK(pthread_barrier_init(&late, NULL, 2) == 0);
  new_id();
  ranks_start(one_is_late, 2);
  new_id();
  ranks_start(given_back_meanwhile, 2);
  pthread_barrier_destroy(&late);
  wrong_communicators();
  CHECK(pthread_barrier_init(&answered, NULL, 2) == 0);
  new_id();
  ranks_start(rank_of_two, 2);
  pthread_barrier_destroy(&answered);
  refused_plan(NULL, &call, "the plan of a rank is null");
  refused_plan((annulus_ring_rank_plan*)(uintptr_t)0x10, &call, "is no plan of a rank");
}
