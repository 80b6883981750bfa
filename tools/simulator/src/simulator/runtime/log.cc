#include "simulator/runtime/log.h"

#include <cstdio>
#include <mutex>
#include <set>

namespace annulus::simulator::runtime {

void write_line(const std::string& text) {
  const std::string line = "annulus runtime: " + text + "\n";
  std::fwrite(line.data(), 1, line.size(), stderr);
  std::fflush(stderr);
}

void write_once(const char* symbol, const std::string& text) {
  static std::mutex mutex;
  static auto* const written = new std::set<std::string>;  // exit handlers may still use it
  std::lock_guard lock(mutex);
  if (written->insert(symbol).second) write_line(text);
}

}  // namespace annulus::simulator::runtime
