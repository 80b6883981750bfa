// Ranks that meet through a file or through the caller's all-gather, and rejected ranks.

#define _POSIX_C_SOURCE 200809L

#include <annulus/c_ring.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "c_abi/check.h"
#include "c_abi/ranks.h"

enum { kThree = 3, kMost = 16 };

static char address[128];

static annulus_rendezvous_options options_of(int rank, int ranks) {
  annulus_rendezvous_options options = ANNULUS_RENDEZVOUS_OPTIONS_INIT;
  options.address = address;
  options.token = "of the C interface";
  options.rank = rank;
  options.ranks = ranks;
  options.deadline_ms = 60000;
  return options;
}

// Rank r contributes r + 1 bytes.
static void gather_all(annulus_rendezvous* meeting, int rank) {
  const char own[] = {'a', 'b', 'c'};
  char all[kThree][kMost];
  size_t counts[kThree] = {0};
  int32_t arrivals[kThree] = {7, 7, 7};
  int other = 0;
  memset(all, '.', sizeof all);
  CHECK_OK(
      annulus_rendezvous_all_gather(meeting, own, (size_t)rank + 1, 60000, all, kMost, counts));
  for (other = 0; other < kThree; ++other) {
    CHECK(counts[other] == (size_t)other + 1);
    CHECK(memcmp(all[other], own, counts[other]) == 0 && all[other][counts[other]] == '.');
  }
  CHECK_OK(annulus_rendezvous_gather(meeting, own, 2, 60000, all, kMost, counts, arrivals));
  for (other = 0; other < kThree; ++other) {
    CHECK(counts[other] == 2 && arrivals[other] == ANNULUS_CAME);
  }
  // Without counts, all ranks contribute the full size.
  memset(all, '.', sizeof all);
  CHECK_OK(annulus_rendezvous_all_gather(meeting, own, 3, 60000, all, 3, NULL));
  CHECK(memcmp(all, "abcabcabc.", 10) == 0);
  CHECK_OK(annulus_rendezvous_all_gather(meeting, NULL, 0, 60000, NULL, 0, NULL));
}

// Calls that fail on all ranks in the same way, so that their numbers of calls stay equal.
static void refused_gathers(annulus_rendezvous* meeting, int rank) {
  static const char bytes[ANNULUS_MAX_GATHERED_BYTES + 1];
  char all[kThree][kMost];
  size_t counts[kThree] = {9, 9, 9};
  int32_t arrivals[kThree] = {7, 7, 7};
  const size_t most = ANNULUS_MAX_GATHERED_BYTES;
  // The bytes arrived, but there is not enough room.
  CHECK_FAILS(
      annulus_rendezvous_all_gather(meeting, bytes, rank == 1 ? 5 : 4, 60000, all, 4, counts),
      ANNULUS_INVALID_ARGUMENT, "rank 1 of 3 brought 5 bytes; there is room for 4");
  CHECK_FAILS(annulus_rendezvous_all_gather(meeting, bytes, rank == 2 ? 3 : 4, 60000, all, 4, NULL),
              ANNULUS_INVALID_ARGUMENT, "rank 2 of 3 brought 3 bytes; there is room for 4, and");
  CHECK(counts[0] == 9);
  // These calls send nothing.
  CHECK_FAILS(annulus_rendezvous_all_gather(meeting, NULL, 4, 60000, all, 4, NULL),
              ANNULUS_INVALID_ARGUMENT, "own is null");
  CHECK_FAILS(annulus_rendezvous_all_gather(meeting, bytes, 4, 60000, NULL, 4, NULL),
              ANNULUS_INVALID_ARGUMENT, "all (where the bytes go) is null");
  CHECK_FAILS(annulus_rendezvous_all_gather(meeting, bytes, 4, 60000, all, most + 1, NULL),
              ANNULUS_INVALID_ARGUMENT, "room for 65537 bytes");
  CHECK_FAILS(annulus_rendezvous_all_gather(meeting, bytes, 4, -1, all, 4, NULL),
              ANNULUS_INVALID_ARGUMENT, "deadline_ms is -1");
  CHECK_FAILS(annulus_rendezvous_gather(meeting, bytes, 4, 60000, all, 4, NULL, arrivals),
              ANNULUS_INVALID_ARGUMENT, "counts");
  CHECK_FAILS(annulus_rendezvous_gather(meeting, bytes, 4, 60000, all, 4, counts, NULL),
              ANNULUS_INVALID_ARGUMENT, "arrivals");
  // These calls count.
  CHECK_FAILS(annulus_rendezvous_all_gather(meeting, bytes, most + 1, 60000, all, 4, counts),
              ANNULUS_INVALID_ARGUMENT, "65537");
  CHECK_FAILS(annulus_rendezvous_gather(meeting, bytes, 4, 0, all, 4, counts, arrivals),
              ANNULUS_INVALID_ARGUMENT, "");
}

static void positions(annulus_rendezvous* meeting, int rank) {
  const annulus_position position = {1, 20 + rank, 3};
  annulus_rank_state state = ANNULUS_RANK_STATE_INIT;
  const int other = rank == 0 ? 2 : 0;
  const struct timespec pause = {0, 1000000};
  int waited = 0;
  CHECK_OK(annulus_rendezvous_post(meeting, &position));
  for (waited = 0; waited < 60000 && !state.posted; ++waited) {
    CHECK_OK(annulus_rendezvous_get_state(meeting, other, &state));
    nanosleep(&pause, NULL);
  }
  CHECK(state.posted == 1 && state.gone == 0 && strcmp(state.reason, "") == 0);
  CHECK(state.position.generation == 1 && state.position.run == 20 + other);
  CHECK(state.position.round == 3);
  CHECK(state.silent_ms >= 0 && state.silent_ms < 600000);
  CHECK_FAILS(annulus_rendezvous_post(meeting, NULL), ANNULUS_INVALID_ARGUMENT, "position is null");
  CHECK_FAILS(annulus_rendezvous_get_state(meeting, rank, &state), ANNULUS_INVALID_ARGUMENT,
              "not one of the 2 other ranks");
  CHECK_FAILS(annulus_rendezvous_get_state(meeting, 3, &state), ANNULUS_INVALID_ARGUMENT, "rank 3");
  CHECK_FAILS(annulus_rendezvous_get_state(meeting, other, NULL), ANNULUS_INVALID_ARGUMENT,
              "annulus_rank_state is null");
}

// The last rank leaves, and the others report it.
static void left_alone(annulus_rendezvous* meeting, int rank) {
  char all[kThree][kMost];
  size_t counts[kThree] = {0};
  int32_t arrivals[kThree] = {0};
  annulus_rank_state state = ANNULUS_RANK_STATE_INIT;
  CHECK_OK(annulus_rendezvous_gather(meeting, "x", 1, 60000, all, kMost, counts, arrivals));
  CHECK(arrivals[rank] == ANNULUS_CAME && arrivals[2] == ANNULUS_GONE);
  CHECK(counts[rank] == 1 && counts[2] == 0);
  CHECK_FAILS(annulus_rendezvous_all_gather(meeting, "x", 1, 60000, all, 1, NULL),
              ANNULUS_COMMUNICATION, "rank 2 of 3 has gone");
  CHECK_OK(annulus_rendezvous_get_state(meeting, 2, &state));
  CHECK(state.gone == 1 && strlen(state.reason) > 0);
}

static void refused_handle(annulus_rendezvous* handle, const char* part) {
  annulus_rendezvous_info info = ANNULUS_RENDEZVOUS_INFO_INIT;
  annulus_rank_state state = ANNULUS_RANK_STATE_INIT;
  const annulus_position position = {0, 0, 0};
  size_t counts[kThree];
  int32_t arrivals[kThree];
  CHECK_FAILS(annulus_rendezvous_get_info(handle, &info), ANNULUS_INVALID_ARGUMENT, part);
  CHECK_FAILS(annulus_rendezvous_all_gather(handle, NULL, 0, 1, NULL, 0, NULL),
              ANNULUS_INVALID_ARGUMENT, part);
  CHECK_FAILS(annulus_rendezvous_gather(handle, NULL, 0, 1, NULL, 0, counts, arrivals),
              ANNULUS_INVALID_ARGUMENT, part);
  CHECK_FAILS(annulus_rendezvous_post(handle, &position), ANNULUS_INVALID_ARGUMENT, part);
  CHECK_FAILS(annulus_rendezvous_get_state(handle, 0, &state), ANNULUS_INVALID_ARGUMENT, part);
  CHECK_FAILS(annulus_rendezvous_destroy(handle), ANNULUS_INVALID_ARGUMENT, part);
}

static void one_of_three(int rank) {
  annulus_rendezvous* meeting = ranks_meet("three", rank, kThree);
  annulus_rendezvous_info info = ANNULUS_RENDEZVOUS_INFO_INIT;
  CHECK_OK(annulus_rendezvous_get_info(meeting, &info));
  CHECK(info.rank == rank && info.ranks == kThree);
  CHECK_FAILS(annulus_rendezvous_get_info(meeting, NULL), ANNULUS_INVALID_ARGUMENT,
              "annulus_rendezvous_info is null");
  gather_all(meeting, rank);
  refused_gathers(meeting, rank);
  positions(meeting, rank);
  if (rank < 2) left_alone(meeting, rank);
  CHECK_OK(annulus_rendezvous_destroy(meeting));
  refused_handle(meeting, "the rendezvous was given back already");
}

// ---- Over the caller's own all-gather

typedef struct shared_bytes {
  pthread_barrier_t barrier;
  char bytes[2][4096];
  size_t count;
  int code;
} shared_bytes;

typedef struct shared_rank {
  shared_bytes* shared;
  int rank;
} shared_rank;

static int gather_by_memory(void* user, const void* own, size_t bytes, void* all) {
  shared_rank* self = user;
  int rank = 0;
  if (bytes > sizeof self->shared->bytes[0]) return 1;
  memcpy(self->shared->bytes[self->rank], own, bytes);
  pthread_barrier_wait(&self->shared->barrier);
  for (rank = 0; rank < 2; ++rank) {
    memcpy((char*)all + (size_t)rank * bytes, self->shared->bytes[rank], bytes);
  }
  return self->shared->code;
}

static shared_bytes over;

static void one_over_memory(int rank) {
  shared_rank self = {&over, rank};
  annulus_rendezvous_options options = options_of(rank, 2);
  annulus_rendezvous* meeting = NULL;
  char all[2];
  options.address = options.token = NULL;
  if (over.code != 0) {
    CHECK_FAILS(annulus_rendezvous_over(gather_by_memory, &self, &options, &meeting),
                ANNULUS_COMMUNICATION, "it returned 5");
    CHECK(meeting == NULL);
    return;
  }
  CHECK_OK(annulus_rendezvous_over(gather_by_memory, &self, &options, &meeting));
  CHECK_OK(annulus_rendezvous_all_gather(meeting, rank == 0 ? "p" : "q", 1, 60000, all, 1, NULL));
  CHECK(memcmp(all, "pq", 2) == 0);
  CHECK_OK(annulus_rendezvous_destroy(meeting));
}

// ---- Wrong options

static void refused(const annulus_rendezvous_options* options, annulus_status code,
                    const char* part) {
  annulus_rendezvous* none = NULL;
  CHECK_FAILS(annulus_rendezvous_meet(options, &none), code, part);
  CHECK(none == NULL);
}

static void wrong_options(void) {
  annulus_rendezvous_options options = options_of(0, 2);
  annulus_rendezvous* none = NULL;
  shared_rank self = {&over, 0};
#define REFUSED(field, value, part)                      \
  do {                                                   \
    options.field = (value);                             \
    refused(&options, ANNULUS_INVALID_ARGUMENT, (part)); \
    options = options_of(0, 2);                          \
  } while (0)
  REFUSED(address, NULL, "");
  REFUSED(address, "udp:1", "udp:1");
  REFUSED(token, NULL, "token");
  REFUSED(listen_on, "nowhere", "nowhere");
  REFUSED(rank, 2, "rank 2 of 2");
  REFUSED(rank, -1, "rank -1 of 2");
  REFUSED(ranks, 0, "");
  REFUSED(ranks, 2000, "2000");
  REFUSED(deadline_ms, 0, "");
  REFUSED(deadline_ms, -3, "deadline_ms is -3");
  REFUSED(deadline_ms, INT64_MAX, "deadline_ms is 9223372036854775807");
  REFUSED(struct_size, 12, "struct_size of annulus_rendezvous_options");
#undef REFUSED
  refused(NULL, ANNULUS_INVALID_ARGUMENT, "annulus_rendezvous_options is null");
  CHECK_FAILS(annulus_rendezvous_meet(&options, NULL), ANNULUS_INVALID_ARGUMENT,
              "rendezvous (where the handle goes)");
  CHECK_FAILS(annulus_rendezvous_over(NULL, NULL, &options, &none), ANNULUS_INVALID_ARGUMENT,
              "all_gather is null");
  CHECK_FAILS(annulus_rendezvous_over(gather_by_memory, &self, NULL, &none),
              ANNULUS_INVALID_ARGUMENT, "annulus_rendezvous_options is null");
  CHECK_FAILS(annulus_rendezvous_over(gather_by_memory, &self, &options, NULL),
              ANNULUS_INVALID_ARGUMENT, "rendezvous (where the handle goes)");
  // No other rank arrives.
  options.deadline_ms = 20;
  refused(&options, ANNULUS_COMMUNICATION, "rank 1");
  CHECK(none == NULL);
}

void test_rendezvous(void) {
  snprintf(address, sizeof address, "file:/tmp/annulus-c-%d", (int)getpid());
  ranks_start(one_of_three, kThree);
  CHECK(pthread_barrier_init(&over.barrier, NULL, 2) == 0);
  ranks_start(one_over_memory, 2);
  over.code = 5;
  ranks_start(one_over_memory, 2);
  pthread_barrier_destroy(&over.barrier);
  wrong_options();
  refused_handle(NULL, "the rendezvous is null");
  refused_handle((annulus_rendezvous*)address, "is not a handle of type rendezvous");
}
