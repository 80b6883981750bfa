#ifndef ANNULUS_DEVICE_SIMULATOR_H_
#define ANNULUS_DEVICE_SIMULATOR_H_

// What only a simulated device can say, through the optional slots of the table. On a real device
// the answers are empty, and nothing here is an error.

#include <optional>
#include <string>

#include "base/log.h"
#include "device/context.h"

namespace annulus::device {

// Totals of the launches on this device since they were last cleared. Waits for nothing:
// synchronise first.
std::optional<abi::SimulatorCounters> simulator_counters(const Context& context,
                                                         bool clear = false);

std::optional<abi::SimulatorOptions> simulator_options(const Context& context);
// For the launches from now on, of this device in this process. False on a real device.
bool set_simulator_options(const Context& context, const abi::SimulatorOptions& options);

// Lines of a simulated device go to a log for as long as this lives; a real device writes none.
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

// The number of the device that is called sim:ARCHITECTURE:INDEX, where the driver has one.
std::optional<int> simulated_ordinal(const Driver& driver, const std::string& architecture,
                                     int index);

// The last fault as JSON: kind, detail, kernel, file, line, block, warp, lane, message. Empty where
// there was none.
std::string simulator_fault(const Context& context);
// Forgets it, and makes contexts of the device that it broke usable again.
bool clear_simulator_fault(const Context& context);

}  // namespace annulus::device

#endif  // ANNULUS_DEVICE_SIMULATOR_H_
