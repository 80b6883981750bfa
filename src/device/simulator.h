#ifndef ANNULUS_DEVICE_SIMULATOR_H_
#define ANNULUS_DEVICE_SIMULATOR_H_

// Functions of a simulated device, through the optional slots of the table. On a real device their
// answers are empty, and nothing here is an error.

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
// Sets how launches run from now on, for this device in this process. False on a real device.
bool set_simulator_options(const Context& context, const abi::SimulatorOptions& options);

// Writes the lines of a simulated device to a log for as long as it lives; a real device writes
// none.
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

// The ordinal of the device sim:ARCHITECTURE:INDEX, where the driver has it.
std::optional<int> simulated_ordinal(const Driver& driver, const std::string& architecture,
                                     int index);

// The last fault as JSON: kind, detail, kernel, file, line, block, warp, lane, message. Empty where
// there was no fault.
std::string simulator_fault(const Context& context);
// Forgets the last fault, and makes the contexts usable again that it has lost. False on a real
// device.
bool clear_simulator_fault(const Context& context);

}  // namespace annulus::device

#endif  // ANNULUS_DEVICE_SIMULATOR_H_
