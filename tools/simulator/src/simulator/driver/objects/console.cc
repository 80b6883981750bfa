#include "simulator/driver/objects/console.h"

#include <cstdio>

namespace annulus::simulator::driver {

void write_stdout(std::string_view text) { std::fwrite(text.data(), 1, text.size(), stdout); }

void write_stderr(std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stderr);
  std::fflush(stderr);
}

}  // namespace annulus::simulator::driver
