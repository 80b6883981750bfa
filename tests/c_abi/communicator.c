// Ranks that exchange bytes, and one rank of a ring that uses such ranks.

#define _POSIX_C_SOURCE 200809L

#include <annulus/c_ring.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <annulus/c_tools.h>
#include "c_abi/check.h"
#include "c_abi/ranks.h"
#include "c_abi/sample.h"

static void refused_handle(annulus_communicator* handle, annulus_device* device, const char* part) {
  annulus_communicator_info info = ANNULUS_COMMUNICATOR_INFO_INIT;
  annulus_problem problem = ANNULUS_PROBLEM_INIT;
  annulus_ring_rank_plan* plan = NULL;
  annulus_communicator_failure failure = ANNULUS_COMMUNICATOR_FAILURE_INIT;
  annulus_communicator_event event = ANNULUS_COMMUNICATOR_EVENT_INIT;
  annulus_rank_state peer = ANNULUS_RANK_STATE_INIT;
  void* memory = NULL;
  int64_t runs = 0;
  int32_t state = 0;
  CHECK_FAILS(annulus_communicator_get_info(handle, &info), ANNULUS_INVALID_ARGUMENT, part);
  CHECK_FAILS(annulus_communicator_exchange(handle, NULL, NULL, 0, NULL, 0, NULL),
              ANNULUS_INVALID_ARGUMENT, part);
  CHECK_FAILS(annulus_communicator_allocate(handle, 8, &memory), ANNULUS_INVALID_ARGUMENT, part);
  CHECK_FAILS(annulus_communicator_release(handle, NULL), ANNULUS_INVALID_ARGUMENT, part);
  CHECK_FAILS(annulus_communicator_get_runs(handle, &runs), ANNULUS_INVALID_ARGUMENT, part);
  CHECK_FAILS(annulus_communicator_get_state(handle, 0, &state), ANNULUS_INVALID_ARGUMENT, part);
  CHECK_FAILS(annulus_communicator_wait(handle, 0, &state), ANNULUS_INVALID_ARGUMENT, part);
  CHECK_FAILS(annulus_communicator_get_failure(handle, &failure), ANNULUS_INVALID_ARGUMENT, part);
  CHECK_FAILS(annulus_communicator_next_event(handle, 0, &event), ANNULUS_INVALID_ARGUMENT, part);
  CHECK_FAILS(annulus_communicator_get_peer(handle, 0, &peer), ANNULUS_INVALID_ARGUMENT, part);
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
  CHECK_FAILS(annulus_communicator_exchange(ranks, NULL, &sent, 1, &received, 1, NULL),
              ANNULUS_INVALID_ARGUMENT, "is null");
  CHECK_FAILS(annulus_communicator_exchange(ranks, NULL, NULL, 1, NULL, 0, NULL),
              ANNULUS_INVALID_ARGUMENT, "sends is null");
  CHECK_FAILS(annulus_communicator_exchange(ranks, NULL, NULL, 0, NULL, 1, NULL),
              ANNULUS_INVALID_ARGUMENT, "receives is null");
  sent.to = rank;
  CHECK_FAILS(annulus_communicator_exchange(ranks, NULL, &sent, 1, NULL, 0, NULL),
              ANNULUS_INVALID_ARGUMENT, "peers are the other ranks");
  sent.to = INT64_C(1) << 32 | (1 - rank);
  CHECK_FAILS(annulus_communicator_exchange(ranks, NULL, &sent, 1, NULL, 0, NULL),
              ANNULUS_INVALID_ARGUMENT, "peers are the other ranks");
  CHECK_OK(annulus_communicator_exchange(ranks, NULL, NULL, 0, NULL, 0, NULL));
}

// Checks the states of two runs.
static void states(annulus_communicator* ranks) {
  int64_t runs = 0;
  int32_t state = 0;
  CHECK_OK(annulus_communicator_get_runs(ranks, &runs));
  CHECK(runs == 2);
  CHECK_OK(annulus_communicator_get_state(ranks, 0, &state));
  CHECK(state == ANNULUS_RUN_GOOD);
  CHECK(strcmp(annulus_run_state_text(state), "good") == 0);
  CHECK(strcmp(annulus_run_state_text(77), "?") == 0);
  CHECK_FAILS(annulus_communicator_get_state(ranks, 2, &state), ANNULUS_INVALID_ARGUMENT,
              "run 2 of a communicator that has had 2");
  CHECK_FAILS(annulus_communicator_wait(ranks, -1, &state), ANNULUS_INVALID_ARGUMENT, "run -1");
  CHECK_FAILS(annulus_communicator_get_runs(ranks, NULL), ANNULUS_INVALID_ARGUMENT, "runs (where");
  CHECK_FAILS(annulus_communicator_get_state(ranks, 0, NULL), ANNULUS_INVALID_ARGUMENT,
              "state (where");
  CHECK_FAILS(annulus_communicator_wait(ranks, 0, NULL), ANNULUS_INVALID_ARGUMENT, "state (where");
}

static void exchange_memory(annulus_communicator* ranks) {
  void* memory = NULL;
  void* kept = NULL;
  void* none = &memory;
  CHECK_OK(annulus_communicator_allocate(ranks, 100, &memory));
  CHECK_OK(annulus_communicator_allocate(ranks, 1, &kept));
  CHECK(memory != NULL && kept != NULL && kept != memory);
  CHECK_OK(annulus_communicator_allocate(ranks, 0, &none));
  CHECK(none == NULL);
  CHECK_OK(annulus_communicator_release(ranks, NULL));
  CHECK_OK(annulus_communicator_release(ranks, memory));
  CHECK_FAILS(annulus_communicator_release(ranks, memory), ANNULUS_INVALID_ARGUMENT,
              "is not memory of this communicator");
  CHECK_FAILS(annulus_communicator_allocate(ranks, 8, NULL), ANNULUS_INVALID_ARGUMENT,
              "memory (where the address goes)");
}

static void exchange(annulus_communicator* ranks, annulus_device* device, int rank) {
  const int own = 30 + rank;
  int got = 0;
  void* memory = NULL;
  int64_t run = -1;
  int32_t state = 0;
  annulus_sent_bytes sent = {NULL, sizeof own, 1 - rank};
  annulus_received_bytes received = {NULL, sizeof own, 1 - rank};
  CHECK_OK(annulus_device_allocate(device, 512, &memory));
  CHECK_OK(annulus_device_copy_to_device(device, memory, &own, sizeof own));
  sent.from = memory;
  received.to = (char*)memory + 256;
  CHECK_OK(annulus_communicator_exchange(ranks, NULL, &sent, 1, &received, 1, &run));
  CHECK(run == 0);
  CHECK_OK(annulus_communicator_wait(ranks, run, &state));
  CHECK(state == ANNULUS_RUN_GOOD);
  CHECK_OK(annulus_device_synchronize(device));
  CHECK_OK(annulus_device_copy_to_host(device, &got, received.to, sizeof got));
  CHECK(got == 31 - rank);
  wrong_messages(ranks, rank, memory);
  states(ranks);
  exchange_memory(ranks);
}

// Appends a letter of the text of each event, up to the last event, to `letters`.
static void events_of(annulus_communicator* ranks, char* letters, size_t most) {
  annulus_communicator_event event = ANNULUS_COMMUNICATOR_EVENT_INIT;
  size_t count = 0;
  CHECK_OK(annulus_communicator_next_event(ranks, 0, &event));
  for (; event.number != 0 && count + 1 < most; ++count) {
    letters[count] = annulus_communicator_event_text((int)event.kind)[0];
    CHECK(event.number == (int64_t)count + 1 && strlen(event.text) > 0);
    CHECK(event.unix_micros > INT64_C(1600000000000000));
    CHECK_OK(annulus_communicator_next_event(ranks, event.number, &event));
  }
  letters[count] = '\0';
}

static void given_up(annulus_communicator* ranks, int rank) {
  annulus_communicator_failure failure = ANNULUS_COMMUNICATOR_FAILURE_INIT;
  annulus_communicator_failure again = ANNULUS_COMMUNICATOR_FAILURE_INIT;
  annulus_rank_state peer = ANNULUS_RANK_STATE_INIT;
  char events[8];
  CHECK_OK(annulus_communicator_get_failure(ranks, &failure));
  CHECK(failure.reason == NULL && failure.blamed_count == 0);
  CHECK_FAILS(annulus_communicator_give_up(ranks, NULL), ANNULUS_INVALID_ARGUMENT,
              "reason is null");
  CHECK_FAILS(annulus_communicator_get_failure(ranks, NULL), ANNULUS_INVALID_ARGUMENT,
              "annulus_communicator_failure is null");
  CHECK_FAILS(annulus_communicator_next_event(ranks, 0, NULL), ANNULUS_INVALID_ARGUMENT,
              "annulus_communicator_event is null");
  // Without a rendezvous, the communicator has no information about the other rank.
  CHECK_FAILS(annulus_communicator_get_peer(ranks, 1 - rank, &peer), ANNULUS_INVALID_ARGUMENT,
              "not one of the 0 other ranks");
  CHECK_OK(annulus_communicator_give_up(ranks, "enough"));
  CHECK_OK(annulus_communicator_give_up(ranks, "once more"));
  CHECK_OK(annulus_communicator_get_failure(ranks, &failure));
  CHECK_OK(annulus_communicator_get_failure(ranks, &again));
  CHECK(failure.reason != NULL && strcmp(failure.reason, "enough") == 0);
  CHECK(failure.blamed_count == 1 && failure.blamed[0] == rank);
  CHECK(again.reason == failure.reason && again.blamed == failure.blamed);
  CHECK_FAILS(annulus_communicator_exchange(ranks, NULL, NULL, 0, NULL, 0, NULL),
              ANNULUS_COMMUNICATION, "was given up: enough");
  events_of(ranks, events, sizeof events);
  CHECK(strcmp(events, "og") == 0);  // opened, and given up
  CHECK(strcmp(annulus_communicator_event_text(99), "?") == 0);
}

static void bytes_by_id(int rank) {
  annulus_device* device = ranks_open(rank);
  annulus_communicator_info info = ANNULUS_COMMUNICATOR_INFO_INIT;
  annulus_communicator* ranks = NULL;
  CHECK_OK(annulus_communicator_open(device, &the_id, 2, rank, NULL, &ranks));
  CHECK_OK(annulus_communicator_get_info(ranks, &info));
  CHECK(info.rank == rank && info.ranks == 2 && info.blocking == 0 && info.borrowed == 0);
  CHECK(info.watched == 1 && info.generation == 0 && info.ctas == 8);
  CHECK(info.simulated == 1 && info.nccl_version >= 21400 && strstr(info.nccl, " at ") != NULL);
  CHECK_FAILS(annulus_communicator_get_info(ranks, NULL), ANNULUS_INVALID_ARGUMENT,
              "annulus_communicator_info is null");
  exchange(ranks, device, rank);
  given_up(ranks, rank);
  CHECK_OK(annulus_communicator_destroy(ranks));
  refused_handle(ranks, device, "the communicator was given back already");
  CHECK_OK(annulus_device_close(device));
}

// Uses a rendezvous, which ends before the communicator. The communicator is blocking.
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
  CHECK(info.blocking == 1 && info.generation == 1 && info.members_digest != 0);
  exchange(ranks, device, rank);
  CHECK_OK(annulus_communicator_destroy(ranks));
  CHECK_OK(annulus_device_close(device));
}

// Rank 1 does not join a group of messages, and rank 0 reports that by the deadline.
static pthread_barrier_t late;

static void one_is_late(int rank) {
  annulus_device* device = ranks_open(rank);
  annulus_communicator_options options = ANNULUS_COMMUNICATOR_OPTIONS_INIT;
  annulus_communicator* ranks = NULL;
  annulus_sent_bytes sent = {NULL, 4, 1 - rank};
  annulus_communicator_failure failure = ANNULUS_COMMUNICATOR_FAILURE_INIT;
  void* memory = NULL;
  options.deadline_ms = 200;
  CHECK_OK(annulus_communicator_open(device, &the_id, 2, rank, &options, &ranks));
  CHECK_OK(annulus_device_allocate(device, 8, &memory));
  sent.from = memory;
  if (rank == 0) {
    CHECK_FAILS(annulus_communicator_exchange(ranks, NULL, &sent, 1, NULL, 0, NULL),
                ANNULUS_COMMUNICATION, "waited 200 ms");
    CHECK_OK(annulus_communicator_get_failure(ranks, &failure));
    CHECK(failure.reason != NULL && strstr(failure.reason, "waited 200 ms") != NULL);
    CHECK_FAILS(annulus_communicator_exchange(ranks, NULL, &sent, 1, NULL, 0, NULL),
                ANNULUS_COMMUNICATION, "was given up");
  }
  pthread_barrier_wait(&late);
  CHECK_OK(annulus_communicator_destroy(ranks));
  CHECK_OK(annulus_device_close(device));
}

// A handle is destroyed while another thread is inside a call with it.
typedef struct inside {
  annulus_communicator* ranks;
  annulus_sent_bytes sent;
  pthread_barrier_t begins;
} inside;

static void* send_to_nobody(void* argument) {
  inside* call = argument;
  pthread_barrier_wait(&call->begins);
  CHECK_FAILS(annulus_communicator_exchange(call->ranks, NULL, &call->sent, 1, NULL, 0, NULL),
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
    CHECK_FAILS(annulus_communicator_exchange(call.ranks, NULL, NULL, 0, NULL, 0, NULL),
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
  options.watched = -1;
  REFUSED(annulus_communicator_open(device, &the_id, 1, 0, &options, &none), "watched is -1");
  options.watched = 0;
  options.ctas = 33;
  REFUSED(annulus_communicator_open(device, &the_id, 1, 0, &options, &none), "33");
  options.ctas = INT64_C(1) << 33;
  REFUSED(annulus_communicator_open(device, &the_id, 1, 0, &options, &none), "CTAs");
  options.ctas = 1;
  options.deadline_ms = -1;
  REFUSED(annulus_communicator_open(device, &the_id, 1, 0, &options, &none), "deadline_ms is -1");
  options.deadline_ms = 0;
  options.planning_ms = INT64_MIN;
  REFUSED(annulus_communicator_open(device, &the_id, 1, 0, &options, &none), "planning_ms is -9");
  options.struct_size = 0;
  REFUSED(annulus_communicator_open(device, &the_id, 1, 0, &options, &none),
          "struct_size of annulus_communicator_options");
  REFUSED(annulus_communicator_borrow(device, NULL, NULL, NULL, &none), "the ncclComm_t is null");
  REFUSED(annulus_communicator_borrow(NULL, device, NULL, NULL, &none), "the device is null");
  REFUSED(annulus_communicator_borrow(device, device, NULL, NULL, NULL),
          "communicator (where the handle goes)");
#undef REFUSED
  CHECK(none == NULL);
  refused_handle(NULL, device, "the communicator is null");
  refused_handle((annulus_communicator*)device, device, "is not a handle of type communicator");
  CHECK_OK(annulus_device_close(device));
}

// ---- One rank of a ring

static const annulus_segment kHalves[2] = {{0, 13}, {13, kRows - 13}};

typedef struct ring_of_two {
  sample* made;  // on this rank's device
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
  CHECK_FAILS(annulus_ring_rank_plan_run(plan, call, NULL), ANNULUS_INVALID_ARGUMENT, part);
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

// Input that all ranks reject before any of them has queued a message.
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
  // One rank differs, and both ranks report it.
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
  int64_t run = -1;
  const size_t row = kHeads * kDim;
  sample_make(made, device);
  make(ring, made, rank);
  CHECK_OK(annulus_communicator_open(device, &the_id, 2, rank, NULL, &ranks));
  wrong_plans(device, ranks, ring, rank);
  CHECK_OK(annulus_ring_rank_plan_create(device, ranks, &ring->problem, &ring->options, &plan));
  // The plan keeps the device and the communicator alive.
  CHECK_OK(annulus_communicator_destroy(ranks));
  told(plan, rank);
  CHECK_OK(annulus_ring_rank_plan_get_rank(plan, &own));
  CHECK_OK(annulus_device_allocate(device, (size_t)own.workspace_bytes, &ring->call.workspace));
  call = ring->call;
  wrong = ring->operands;
  wrong.q = NULL;
  call.operands = &wrong;
  CHECK_FAILS(annulus_ring_rank_plan_run(plan, &call, NULL), ANNULUS_INVALID_ARGUMENT, "Q is null");
  CHECK_FAILS(annulus_ring_rank_plan_run(plan, NULL, NULL), ANNULUS_INVALID_ARGUMENT,
              "annulus_ring_call is null");
  call.operands = NULL;
  CHECK_FAILS(annulus_ring_rank_plan_run(plan, &call, NULL), ANNULUS_INVALID_ARGUMENT,
              "annulus_operands is null");
  sample_clear(made);
  CHECK_OK(annulus_ring_rank_plan_run(plan, &ring->call, NULL));
  CHECK_OK(annulus_ring_rank_plan_run(plan, &ring->call, &run));
  CHECK(run == 1);
  CHECK_OK(annulus_device_synchronize(device));
  CHECK_OK(annulus_device_copy_to_host(device, whole_o + (size_t)kHalves[rank].start * row,
                                       ring->operands.o, (size_t)kHalves[rank].length * row * 2));
  pthread_barrier_wait(&answered);
  if (rank == 0) {
    // Both halves are copied to one device and compared with the definition.
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
  refused_plan((annulus_ring_rank_plan*)(uintptr_t)0x10, &call,
               "is not a handle of type plan of a rank");
}
