// The symbols of annulus/simulator.h for NCCL, in both shared libraries of the simulator.

#include "simulator/nccl/interface.h"

namespace nccl = annulus::simulator::nccl;

int annulusSimulatorNcclVersion(int* version) { return nccl::interface_version(version); }
int annulusSimulatorNcclEntry(const char* name, void** entry) {
  return nccl::interface_entry(name, entry);
}
int annulusSimulatorNcclSetOptions(const annulus_simulator_nccl_options* options) {
  return nccl::interface_set_options(options);
}
int annulusSimulatorNcclCut(int rank, int peer) { return nccl::interface_cut(rank, peer); }
int annulusSimulatorNcclCounters(annulus_simulator_nccl_counters* counters, int clear) {
  return nccl::interface_counters(counters, clear);
}
