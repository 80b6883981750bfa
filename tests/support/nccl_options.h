#ifndef ANNULUS_TESTS_SUPPORT_NCCL_OPTIONS_H_
#define ANNULUS_TESTS_SUPPORT_NCCL_OPTIONS_H_

#include "abi/libraries.h"
#include "annulus/simulator.h"
#include "base/env.h"

namespace annulus::test {

// The address of a function of annulus/simulator.h in the simulator's NCCL library.
inline void* simulated_nccl_symbol(const char* name) {
  static const abi::NcclLibrary library =
      abi::find_simulated_nccl(abi::default_search(base::read_environment()));
  return library.library.symbol(name);
}

// Sets the options of the simulator's NCCL. Returns false if the options are not valid.
inline bool set_nccl(const annulus_simulator_nccl_options& options) {
  const auto set = reinterpret_cast<int (*)(const annulus_simulator_nccl_options*)>(
      simulated_nccl_symbol("annulusSimulatorNcclSetOptions"));
  return set != nullptr && set(&options) == 0;
}

// Calls annulusSimulatorNcclCut. Returns false if there is no such connection.
inline bool cut_nccl(int rank, int peer) {
  const auto cut =
      reinterpret_cast<int (*)(int, int)>(simulated_nccl_symbol("annulusSimulatorNcclCut"));
  return cut != nullptr && cut(rank, peer) == 0;
}

}  // namespace annulus::test

#endif  // ANNULUS_TESTS_SUPPORT_NCCL_OPTIONS_H_
