#include "api/tuned_places.h"

#include "abi/own_folders.h"
#include "tuned/device_key.h"

namespace annulus::api {

std::vector<std::string> TunedPlaces::all() const {
  std::vector<std::string> places = folders;
  places.insert(places.end(), shipped.begin(), shipped.end());
  return places;
}

TunedPlaces tuned_places(const std::optional<std::string>& tuned_path,
                         const base::Environment& environment) {
  TunedPlaces places;
  places.path =
      tuned_path ? base::search_path_of(*tuned_path) : base::default_tuned_path(environment);
  const bool named = tuned_path || !environment.tuned.empty();
  if (named) {
    places.folders = tuned::split_path(places.path);
  } else if (!places.path.empty()) {
    places.folders = {places.path};  // one folder, although HOME may have a ':'
  }
  places.lacks_folder = !named && places.path.empty();
  if (!places.path.empty() || !named) places.shipped = abi::shared_folders("tuned");
  return places;
}

tuned::StoreOptions store_options(const TunedPlaces& places, const device::DeviceInfo& device,
                                  const attention::DeviceLimits& limits, int driver_version,
                                  const jit::TemplateSet& templates) {
  tuned::StoreOptions tuned;
  tuned.folders = places.folders;
  tuned.shipped = places.shipped;
  // Kernels from other templates have no revision, so the digest of the templates takes its place.
  std::optional<base::Digest> digest;
  if (templates.digest() != jit::TemplateSet::embedded()->digest()) digest = templates.digest();
  tuned.device = tuned::device_key(device, jit::to_string(limits.arch), digest);
  tuned.driver_version = driver_version;
  tuned.limits = limits;
  return tuned;
}

}  // namespace annulus::api
