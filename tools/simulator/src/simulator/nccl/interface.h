#ifndef ANNULUS_SIMULATOR_NCCL_INTERFACE_H_
#define ANNULUS_SIMULATOR_NCCL_INTERFACE_H_

// The functions of annulus/simulator.h for the simulated NCCL. Each returns a CUresult.

#include "annulus/simulator.h"

namespace annulus::simulator::nccl {

int interface_version(int* version);
int interface_entry(const char* name, void** entry);
int interface_set_options(const annulus_simulator_nccl_options* given);
int interface_cut(int rank, int peer);
int interface_counters(annulus_simulator_nccl_counters* given, int clear);

}  // namespace annulus::simulator::nccl

#endif  // ANNULUS_SIMULATOR_NCCL_INTERFACE_H_
