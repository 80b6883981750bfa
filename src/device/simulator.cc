#include "device/simulator.h"

#include <vector>

namespace annulus::device {

std::optional<abi::SimulatorCounters> simulator_counters(const Context& context, bool clear) {
  const abi::CudaTable& cuda = context.table();
  if (cuda.simulator_counters == nullptr) return std::nullopt;
  abi::SimulatorCounters counters;
  abi::check(cuda, cuda.simulator_counters(context.device(), &counters, clear ? 1 : 0),
             "annulusSimulatorCounters");
  return counters;
}

std::optional<abi::SimulatorOptions> simulator_options(const Context& context) {
  const abi::CudaTable& cuda = context.table();
  if (cuda.simulator_get_options == nullptr) return std::nullopt;
  abi::SimulatorOptions options;
  abi::check(cuda, cuda.simulator_get_options(context.device(), &options),
             "annulusSimulatorGetOptions");
  return options;
}

bool set_simulator_options(const Context& context, const abi::SimulatorOptions& options) {
  const abi::CudaTable& cuda = context.table();
  if (cuda.simulator_set_options == nullptr) return false;
  abi::check(cuda, cuda.simulator_set_options(context.device(), &options),
             "annulusSimulatorSetOptions");
  return true;
}

std::string simulator_fault(const Context& context) {
  const abi::CudaTable& cuda = context.table();
  if (cuda.simulator_last_fault == nullptr) return {};
  std::vector<char> json(65536);
  abi::check(cuda, cuda.simulator_last_fault(context.device(), json.data(), json.size()),
             "annulusSimulatorLastFault");
  return json.data();
}

bool clear_simulator_fault(const Context& context) {
  const abi::CudaTable& cuda = context.table();
  if (cuda.simulator_clear_fault == nullptr) return false;
  abi::check(cuda, cuda.simulator_clear_fault(context.device()), "annulusSimulatorClearFault");
  return true;
}

}  // namespace annulus::device
