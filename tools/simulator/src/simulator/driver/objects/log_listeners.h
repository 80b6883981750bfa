#ifndef ANNULUS_SIMULATOR_DRIVER_OBJECTS_LOG_LISTENERS_H_
#define ANNULUS_SIMULATOR_DRIVER_OBJECTS_LOG_LISTENERS_H_

// The callbacks that receive the lines of a device's log (annulusSimulatorSetLog).

#include <mutex>
#include <string>
#include <vector>

#include "annulus/simulator.h"
#include "base/log.h"

namespace annulus::simulator::driver {

class LogListeners {
 public:
  void add(annulus_simulator_log log, void* user);
  // Removes one such listener, and waits for its running call to end. Returns false if there is
  // none.
  bool remove(annulus_simulator_log log, void* user);
  void write(base::LogLevel level, const std::string& text) const;

 private:
  struct Listener {
    annulus_simulator_log log;
    void* user;
    bool operator==(const Listener&) const = default;
  };
  // Held while listeners are called, so that remove() waits for them.
  mutable std::mutex mutex_;
  std::vector<Listener> listeners_;
};

}  // namespace annulus::simulator::driver

#endif  // ANNULUS_SIMULATOR_DRIVER_OBJECTS_LOG_LISTENERS_H_
