#ifndef ANNULUS_TESTS_SUPPORT_NCCL_OPTIONS_H_
#define ANNULUS_TESTS_SUPPORT_NCCL_OPTIONS_H_

#include "abi/libraries.h"
#include "annulus/simulator.h"
#include "base/env.h"

namespace annulus::test {

// Sets the options of the simulator's NCCL, as the program finds it. False: they are none.
inline bool set_nccl(const annulus_simulator_nccl_options& options) {
  static const abi::NcclLibrary library =
      abi::find_simulated_nccl(abi::default_search(base::read_environment()));
  const auto set = reinterpret_cast<int (*)(const annulus_simulator_nccl_options*)>(
      library.library.symbol("annulusSimulatorNcclSetOptions"));
  return set != nullptr && set(&options) == 0;
}

}  // namespace annulus::test

#endif  // ANNULUS_TESTS_SUPPORT_NCCL_OPTIONS_H_
