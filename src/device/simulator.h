#ifndef ANNULUS_DEVICE_SIMULATOR_H_
#define ANNULUS_DEVICE_SIMULATOR_H_

// Functions for simulated devices, which use the optional entries of the function table. On a real
// device their results are empty, and that is not an error.

#include <optional>
#include <string>

#include "base/log.h"
#include "device/context.h"

namespace annulus::device {

// Totals of the launches on this device since they were last cleared. It does not wait, so
// synchronise first.
std::optional<abi::SimulatorCounters> simulator_counters(const Context& context,
                                                         bool clear = false);

std::optional<abi::SimulatorOptions> simulator_options(const Context& context);
// Sets how later launches run, for this device in this process. Returns false on a real device.
bool set_simulator_options(const Context& context, const abi::SimulatorOptions& options);

// Passes the log lines of a simulated device to a log during its lifetime. A real device has no
// such lines.
class SimulatorLog {
 public:
  SimulatorLog(ContextPointer context, base::Log log);
  ~SimulatorLog();
  SimulatorLog(const SimulatorLog&) = delete;
  SimulatorLog& operator=(const SimulatorLog&) = delete;

 private:
  static void write(void* self, int level, const char* text);

  ContextPointer context_;
  base::Log log_;
};

// The ordinal of the device sim:ARCHITECTURE:INDEX, if the driver has it.
std::optional<int> simulated_ordinal(const Driver& driver, const std::string& architecture,
                                     int index);

// The last fault as JSON: kind, detail, kernel, file, line, block, warp, lane, message. Empty if
// there was no fault.
std::string simulator_fault(const Context& context);
// Clears the last fault, and makes the contexts that it made unusable work again. Returns false on
// a real device.
bool clear_simulator_fault(const Context& context);

}  // namespace annulus::device

#endif  // ANNULUS_DEVICE_SIMULATOR_H_
