// One of three ranks ends. The others name it, regroup without it, and continue.

#include <annulus/c_ring.h>
#include <stdint.h>
#include <string.h>

#include "c_abi/check.h"
#include "c_abi/ranks.h"

enum { kAll = 3 };

// Sends a message to each other rank, and receives one from each.
static annulus_status exchange(annulus_communicator* communicator, void* memory, int64_t* run) {
  annulus_communicator_info info = ANNULUS_COMMUNICATOR_INFO_INIT;
  annulus_sent_bytes sends[kAll];
  annulus_received_bytes receives[kAll];
  size_t count = 0;
  int32_t peer = 0;
  CHECK_OK(annulus_communicator_get_info(communicator, &info));
  for (peer = 0; peer < info.ranks; ++peer) {
    if (peer == info.rank) continue;
    sends[count].from = (char*)memory + 64 * peer;
    receives[count].to = (char*)memory + 64 * peer + 32;
    sends[count].bytes = receives[count].bytes = 16;
    sends[count].to = receives[count].from = peer;
    ++count;
  }
  return annulus_communicator_exchange(communicator, NULL, sends, count, receives, count, run);
}

static void goes_well(annulus_communicator* communicator, void* memory) {
  int64_t run = -1;
  int32_t state = 0;
  CHECK_OK(exchange(communicator, memory, &run));
  CHECK_OK(annulus_communicator_wait(communicator, run, &state));
  CHECK(run == 0 && state == ANNULUS_RUN_GOOD);
}

// Checks that the run is refused, or that its messages never arrive.
static void goes_wrong(annulus_communicator* communicator, annulus_device* device, void* memory) {
  annulus_communicator_failure failure = ANNULUS_COMMUNICATOR_FAILURE_INIT;
  annulus_communicator_event event = ANNULUS_COMMUNICATOR_EVENT_INIT;
  int64_t run = -1;
  int32_t state = 0;
  if (exchange(communicator, memory, &run) == ANNULUS_OK) {
    CHECK_OK(annulus_communicator_wait(communicator, run, &state));
    CHECK(state == ANNULUS_RUN_VOID);
  }
  CHECK_OK(annulus_device_synchronize(device));
  CHECK_OK(annulus_communicator_get_failure(communicator, &failure));
  CHECK(failure.reason != NULL && failure.blamed_count == 1 && failure.blamed[0] == 1);
  do {
    CHECK_OK(annulus_communicator_next_event(communicator, event.number, &event));
  } while (event.number != 0 && event.kind != ANNULUS_EVENT_GIVEN_UP);
  CHECK(event.kind == ANNULUS_EVENT_GIVEN_UP && event.generation == 1);
  CHECK(event.rank_count == 1 && event.ranks[0] == 1);
  CHECK(strcmp(event.text, failure.reason) == 0);
}

static void peers(annulus_communicator* communicator, int rank) {
  annulus_rank_state state = ANNULUS_RANK_STATE_INIT;
  CHECK_OK(annulus_communicator_get_peer(communicator, 2 - rank, &state));
  // It may already have ended its communicator in order to regroup.
  if (state.gone) {
    CHECK(strcmp(state.reason, "it has ended its communicator") == 0 ||
          strcmp(state.reason, "it continues with others") == 0);
  } else {
    CHECK(strcmp(state.reason, "") == 0);
  }
  CHECK_FAILS(annulus_communicator_get_peer(communicator, rank, &state), ANNULUS_INVALID_ARGUMENT,
              "not one of the 2 other ranks");
  CHECK_FAILS(annulus_communicator_get_peer(communicator, 1, NULL), ANNULUS_INVALID_ARGUMENT,
              "annulus_rank_state is null");
}

static void wrong_options(annulus_rendezvous* ranks) {
  annulus_regroup_options options = ANNULUS_REGROUP_OPTIONS_INIT;
  annulus_rendezvous* none = NULL;
  const int32_t nobody = 7;
#define REFUSED(part) \
  CHECK_FAILS(annulus_rendezvous_regroup(ranks, &options, &none), ANNULUS_INVALID_ARGUMENT, part)
  options.at_least = -1;
  REFUSED("at_least is -1");
  options.at_least = INT64_MAX;
  REFUSED("at_least is 9223372036854775807");
  options.at_least = 0;
  options.without_count = 1;
  REFUSED("without is null");
  options.without = &nobody;
  REFUSED("7");
  options.without_count = 0;
  options.deadline_ms = 0;
  REFUSED("");
  options.struct_size = 4;
  REFUSED("struct_size of annulus_regroup_options");
#undef REFUSED
  CHECK_FAILS(annulus_rendezvous_regroup(ranks, NULL, NULL), ANNULUS_INVALID_ARGUMENT,
              "regrouped (where the handle goes)");
  CHECK_FAILS(annulus_rendezvous_regroup(NULL, NULL, &none), ANNULUS_INVALID_ARGUMENT,
              "the rendezvous is null");
  CHECK(none == NULL);
}

// The two remaining ranks, as ranks 0 and 1.
static void go_on(annulus_rendezvous* ranks, annulus_device* device, void* memory, int rank) {
  const int32_t without = 1;
  annulus_regroup_options options = ANNULUS_REGROUP_OPTIONS_INIT;
  annulus_rendezvous_info info = ANNULUS_RENDEZVOUS_INFO_INIT;
  annulus_rendezvous* left = NULL;
  annulus_communicator* communicator = NULL;
  wrong_options(ranks);
  options.without = &without;
  options.without_count = 1;
  options.deadline_ms = 60000;
  CHECK_OK(annulus_rendezvous_regroup(ranks, &options, &left));
  CHECK_OK(annulus_rendezvous_destroy(ranks));
  CHECK_OK(annulus_rendezvous_get_info(left, &info));
  CHECK(info.generation == 2 && info.ranks == 2 && info.rank == rank / 2);
  CHECK(info.members[0] == 0 && info.members[1] == 2 && info.members_digest != 0);
  CHECK_OK(annulus_communicator_meet(device, left, NULL, &communicator));
  goes_well(communicator, memory);
  CHECK_OK(annulus_communicator_destroy(communicator));
  CHECK_OK(annulus_rendezvous_destroy(left));
}

static void one_of_three(int rank) {
  annulus_device* device = ranks_open(rank);
  annulus_rendezvous* ranks = ranks_meet("regroup", rank, kAll);
  annulus_communicator* communicator = NULL;
  annulus_communicator* none = NULL;
  void* memory = NULL;
  CHECK_FAILS(annulus_communicator_borrow(device, NULL, ranks, NULL, &none),
              ANNULUS_INVALID_ARGUMENT, "the ncclComm_t is null");
  CHECK_OK(annulus_device_allocate(device, 64 * kAll, &memory));
  CHECK_OK(annulus_communicator_meet(device, ranks, NULL, &communicator));
  goes_well(communicator, memory);
  if (rank == 1) {
    CHECK_OK(annulus_communicator_destroy(communicator));
    CHECK_OK(annulus_rendezvous_destroy(ranks));
  } else {
    goes_wrong(communicator, device, memory);
    peers(communicator, rank);
    CHECK_OK(annulus_communicator_destroy(communicator));
    go_on(ranks, device, memory, rank);
  }
  CHECK_OK(annulus_device_close(device));
}

void test_regroup(void) { ranks_start(one_of_three, kAll); }
