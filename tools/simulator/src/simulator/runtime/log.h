#ifndef ANNULUS_SIMULATOR_RUNTIME_LOG_H_
#define ANNULUS_SIMULATOR_RUNTIME_LOG_H_

// Lines on stderr about calls that the runtime does not support. Programs that do not use the
// simulator's interface have no other way to receive them. The driver reports the faults of
// kernels.

#include <string>

namespace annulus::simulator::runtime {

// Writes "annulus runtime: " and the text.
void write_line(const std::string& text);

// Writes the text, only at the first call with this symbol.
void write_once(const char* symbol, const std::string& text);

}  // namespace annulus::simulator::runtime

#endif  // ANNULUS_SIMULATOR_RUNTIME_LOG_H_
