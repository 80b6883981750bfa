#include "api/tuned_places.h"

#include "abi/own_folders.h"
#include "autotune/store.h"

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
      tuned_path ? base::tuned_path_of(*tuned_path) : base::default_tuned_path(environment);
  places.folders = autotune::split_path(places.path);
  const bool named = tuned_path || !environment.tuned.empty();
  places.lacks_folder = !named && places.path.empty();
  if (!places.path.empty() || !named) places.shipped = abi::shared_folders("tuned");
  return places;
}

}  // namespace annulus::api
