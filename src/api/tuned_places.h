#ifndef ANNULUS_API_TUNED_PLACES_H_
#define ANNULUS_API_TUNED_PLACES_H_

// Where tuned results are looked for: what the caller says, else the environment, else the user's
// folder of caches; behind that what was installed with the library.

#include <optional>
#include <string>
#include <vector>

#include "attention/kernels/device_limits.h"
#include "base/env.h"
#include "device/device_info.h"
#include "jit/templates.h"
#include "tuned/store.h"

namespace annulus::api {

struct TunedPlaces {
  std::string path;                  // as DeviceInfo::tuned_path
  std::vector<std::string> folders;  // of that path
  std::vector<std::string> shipped;  // behind them; none where the caller wants no folder at all
  bool lacks_folder = false;         // nobody named one, and neither HOME nor XDG_CACHE_HOME is set

  std::vector<std::string> all() const;
};

TunedPlaces tuned_places(const std::optional<std::string>& tuned_path,
                         const base::Environment& environment);

// How a device's store of tuned results is opened. `driver_version` 0: not known.
tuned::StoreOptions store_options(const TunedPlaces& places, const device::DeviceInfo& device,
                                  const attention::DeviceLimits& limits, int driver_version,
                                  const jit::TemplateSet& templates);

}  // namespace annulus::api

#endif  // ANNULUS_API_TUNED_PLACES_H_
