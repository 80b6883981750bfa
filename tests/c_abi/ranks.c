#define _POSIX_C_SOURCE 200809L

#include "c_abi/ranks.h"

#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

#include "c_abi/check.h"
#include "c_abi/sample.h"

enum { kMaxRanks = 8 };

typedef struct started_rank {
  void (*run)(int rank);
  int rank;
} started_rank;

static void* start(void* argument) {
  const started_rank* rank = argument;
  rank->run(rank->rank);
  return NULL;
}

void ranks_start(void (*run)(int rank), int ranks) {
  pthread_t threads[kMaxRanks];
  started_rank started[kMaxRanks];
  int rank = 0;
  for (rank = 0; rank < ranks; ++rank) {
    started[rank].run = run;
    started[rank].rank = rank;
    CHECK(pthread_create(&threads[rank], NULL, start, &started[rank]) == 0);
  }
  for (rank = 0; rank < ranks; ++rank) CHECK(pthread_join(threads[rank], NULL) == 0);
}

annulus_device* ranks_open(int rank) {
  annulus_device_options options = sample_options();
  annulus_device* device = NULL;
  char name[32];
  snprintf(name, sizeof name, "sim:sm_80:%d", rank);
  options.name = name;
  CHECK_OK(annulus_device_open(&options, &device));
  return device;
}

annulus_rendezvous* ranks_meet(const char* name, int rank, int ranks) {
  annulus_rendezvous_options options = ANNULUS_RENDEZVOUS_OPTIONS_INIT;
  annulus_rendezvous* meeting = NULL;
  char address[128];
  snprintf(address, sizeof address, "file:/tmp/annulus-c-%d-%s", (int)getpid(), name);
  options.address = address;
  options.token = "of the C interface";
  options.rank = rank;
  options.ranks = ranks;
  options.deadline_ms = 60000;
  CHECK_OK(annulus_rendezvous_meet(&options, &meeting));
  return meeting;
}
