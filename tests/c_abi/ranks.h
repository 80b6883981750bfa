#ifndef ANNULUS_TESTS_C_ABI_RANKS_H_
#define ANNULUS_TESTS_C_ABI_RANKS_H_

// Ranks on threads. Each rank has a separate simulated device.

#include <annulus/c_ring.h>

// Calls run(0) to run(ranks - 1), each on a thread, and waits for all.
void ranks_start(void (*run)(int rank), int ranks);

// Opens sim:sm_80:N, where N is the rank.
annulus_device* ranks_open(int rank);

// Meets the other ranks through a file. Each name has a different file.
annulus_rendezvous* ranks_meet(const char* name, int rank, int ranks);

#endif  // ANNULUS_TESTS_C_ABI_RANKS_H_
