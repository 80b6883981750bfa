#ifndef ANNULUS_SIMULATOR_RUNTIME_LOG_H_
#define ANNULUS_SIMULATOR_RUNTIME_LOG_H_

// Lines on stderr about calls that the runtime does not support. Programs that know nothing of a
// simulator have no other way to be told. What kernels did wrong is told by the driver.

#include <string>

namespace annulus::simulator::runtime {

// Writes "annulus runtime: " and the text.
void write_line(const std::string& text);

// Writes the text at the first call with this symbol alone.
void write_once(const char* symbol, const std::string& text);

}  // namespace annulus::simulator::runtime

#endif  // ANNULUS_SIMULATOR_RUNTIME_LOG_H_
