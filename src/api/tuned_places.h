#ifndef ANNULUS_API_TUNED_PLACES_H_
#define ANNULUS_API_TUNED_PLACES_H_

// The places where tuned results are searched: the folders that the caller names, else the
// environment, else the user's folder of caches; and after these, the results that were installed
// with the library.

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
  std::string path;                  // the same as DeviceInfo::tuned_path
  std::vector<std::string> folders;  // the folders of that path
  std::vector<std::string> shipped;  // searched after `folders`; empty if the caller wants no
                                     // folder at all
  bool lacks_folder = false;  // the caller named no folder, and neither HOME nor XDG_CACHE_HOME is
                              // set

  std::vector<std::string> all() const;
};

TunedPlaces tuned_places(const std::optional<std::string>& tuned_path,
                         const base::Environment& environment);

// The options with which a device's store of tuned results is opened. `driver_version` is 0 if it
// is not known.
tuned::StoreOptions store_options(const TunedPlaces& places, const device::DeviceInfo& device,
                                  const attention::DeviceLimits& limits, int driver_version,
                                  const jit::TemplateSet& templates);

}  // namespace annulus::api

#endif  // ANNULUS_API_TUNED_PLACES_H_
