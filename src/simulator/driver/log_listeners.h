#ifndef ANNULUS_SIMULATOR_DRIVER_LOG_LISTENERS_H_
#define ANNULUS_SIMULATOR_DRIVER_LOG_LISTENERS_H_

// Who hears the lines of a device: what annulusSimulatorSetLog was told.

#include <mutex>
#include <string>
#include <vector>

#include "annulus/simulator.h"
#include "base/log.h"

namespace annulus::simulator::driver {

class LogListeners {
 public:
  void add(annulus_simulator_log log, void* user);
  // Takes one of them away and waits for its call to end; false: there is none.
  bool remove(annulus_simulator_log log, void* user);
  void write(base::LogLevel level, const std::string& text) const;

 private:
  struct Listener {
    annulus_simulator_log log;
    void* user;
    bool operator==(const Listener&) const = default;
  };
  // Held during the calls: that is what makes remove() wait for them.
  mutable std::mutex mutex_;
  std::vector<Listener> listeners_;
};

}  // namespace annulus::simulator::driver

#endif  // ANNULUS_SIMULATOR_DRIVER_LOG_LISTENERS_H_
