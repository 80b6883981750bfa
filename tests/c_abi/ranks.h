#ifndef ANNULUS_TESTS_C_ABI_RANKS_H_
#define ANNULUS_TESTS_C_ABI_RANKS_H_

// Ranks on threads, each with a simulated device of its own.

#include <annulus/c_ring.h>

// Calls run(0) up to run(ranks - 1), each on a thread, and waits for all.
void ranks_start(void (*run)(int rank), int ranks);

// sim:sm_80:N with N the rank's number.
annulus_device* ranks_open(int rank);

// Meets the other ranks by a file that no other name has.
annulus_rendezvous* ranks_meet(const char* name, int rank, int ranks);

#endif  // ANNULUS_TESTS_C_ABI_RANKS_H_
