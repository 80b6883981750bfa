#ifndef ANNULUS_API_TUNED_TEXT_H_
#define ANNULUS_API_TUNED_TEXT_H_

// Converts tuned results to the structs that callers get.

#include <cstdint>
#include <optional>
#include <string>

#include "annulus/tune.h"
#include "attention/kernels/kernel_config.h"
#include "tuned/listing.h"

namespace annulus::api {

inline std::string name_of(const std::optional<attention::KernelConfig>& config) {
  return config ? attention::to_string(*config) : std::string();
}

// Converts a stored time for callers: cycles stay cycles, and measured nanoseconds become
// microseconds.
inline double told(std::int64_t time, bool predicted) {
  return static_cast<double>(time) / (predicted ? 1.0 : 1e3);
}

// Converts a result for callers (list_tuned.cc).
TunedEntry tell(tuned::ListedEntry listed);

}  // namespace annulus::api

#endif  // ANNULUS_API_TUNED_TEXT_H_
