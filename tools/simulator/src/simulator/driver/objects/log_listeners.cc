#include "simulator/driver/objects/log_listeners.h"

#include <algorithm>

namespace annulus::simulator::driver {

void LogListeners::add(annulus_simulator_log log, void* user) {
  std::lock_guard lock(mutex_);
  listeners_.push_back({log, user});
}

bool LogListeners::remove(annulus_simulator_log log, void* user) {
  std::lock_guard lock(mutex_);
  const auto found = std::find(listeners_.begin(), listeners_.end(), Listener{log, user});
  if (found == listeners_.end()) return false;
  listeners_.erase(found);
  return true;
}

void LogListeners::write(base::LogLevel level, const std::string& text) const {
  std::lock_guard lock(mutex_);
  for (const Listener& one : listeners_) one.log(one.user, static_cast<int>(level), text.c_str());
}

}  // namespace annulus::simulator::driver
