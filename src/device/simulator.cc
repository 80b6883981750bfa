#include "device/simulator.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "abi/check.h"

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

SimulatorLog::SimulatorLog(ContextPointer context, base::Log log)
    : context_(std::move(context)), log_(std::move(log)) {
  const abi::CudaTable& cuda = context_->table();
  if (cuda.simulator_set_log == nullptr) return;
  abi::check(cuda, cuda.simulator_set_log(context_->device(), &write, this, 1),
             "annulusSimulatorSetLog");
}

SimulatorLog::~SimulatorLog() {
  const abi::CudaTable& cuda = context_->table();
  if (cuda.simulator_set_log != nullptr) {
    cuda.simulator_set_log(context_->device(), &write, this, 0);
  }
}

void SimulatorLog::write(void* self, int level, const char* text) {
  // The Error of the failed call already reports the problem, so the level of these lines is at
  // most kInfo.
  const auto at = std::max(static_cast<base::LogLevel>(level), base::LogLevel::kInfo);
  static_cast<const SimulatorLog*>(self)->log_.write(at, "{}", text);
}

std::optional<int> simulated_ordinal(const Driver& driver, const std::string& architecture,
                                     int index) {
  const abi::CudaTable& cuda = driver.table();
  abi::CUdevice device = 0;
  if (cuda.simulator_find_device == nullptr) return std::nullopt;
  const abi::CUresult code = cuda.simulator_find_device(architecture.c_str(), index, &device);
  if (code == abi::kCudaInvalidDevice) return std::nullopt;
  abi::check(cuda, code, "annulusSimulatorFindDevice");
  return device;
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
