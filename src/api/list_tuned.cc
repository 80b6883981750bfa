// Lists tuned results, without the tuner.
#include <utility>

#include "annulus/tune.h"
#include "api/tuned_places.h"
#include "api/tuned_text.h"
#include "base/env.h"
#include "tuned/device_key.h"
#include "tuned/listing.h"

namespace annulus {
namespace api {

TunedEntry tell(tuned::ListedEntry listed) {
  const tuned::Entry& entry = listed.entry;
  const tuned::Entry::Origin& origin = entry.origin;
  TunedEntry each;
  each.path = std::move(listed.path);
  each.name = std::move(listed.name);
  each.packed = listed.packed;
  each.device = std::move(listed.device);
  each.shape = tuned::to_string(entry.shape);
  each.kind = tuned::kind_text(entry.shape);
  each.outdated = tuned::why_outdated(entry);
  each.config = attention::to_string(entry.config);
  each.default_config = attention::to_string(entry.default_config);
  each.runner_up = name_of(entry.runner_up);
  each.predicted = entry.predicted;
  each.complete = entry.complete;
  each.time = told(entry.time, entry.predicted);
  each.default_time = told(entry.default_time, entry.predicted);
  each.ratio_low = static_cast<double>(entry.ratio_low_ppm) / 1e6;
  each.ratio_high = static_cast<double>(entry.ratio_high_ppm) / 1e6;
  each.cold_cache = entry.cold_cache;
  each.other_ratio = static_cast<double>(entry.other_ratio_ppm) / 1e6;
  each.repeated_rounds = entry.repeated_rounds;
  each.rounds = entry.rounds;
  each.candidates = entry.candidates;
  each.library_version = origin.library_version;
  each.driver_version = origin.driver_version;
  each.nvrtc_version = origin.nvrtc_version;
  each.clock_mhz = origin.clock_mhz;
  each.memory_clock_mhz = origin.memory_clock_mhz;
  each.when = origin.when;
  each.batch = origin.batch;
  each.heads = origin.heads;
  each.kv_heads = origin.kv_heads;
  each.seq_q = origin.seq_q;
  each.seq_k = origin.seq_k;
  each.pattern = origin.pattern;
  return each;
}

}  // namespace api

inline namespace v0 {

TunedListing list_tuned(const std::optional<std::string>& tuned_path) {
  TunedListing told;
  told.folders = api::tuned_places(tuned_path, base::read_environment()).all();
  base::FileSystem files;
  tuned::Listing listing = tuned::list_entries(files, told.folders);
  told.ignored = std::move(listing.ignored);
  for (tuned::ListedEntry& listed : listing.entries) {
    told.entries.push_back(api::tell(std::move(listed)));
  }
  return told;
}

std::string why_unused(const TunedEntry& entry, const DeviceInfo& device) {
  if (tuned::are_relatives(entry.device, device.tuned_key)) return entry.outdated;
  const std::string why = tuned::why_other(entry.device, device.tuned_key);
  return why.empty() ? entry.outdated : why;
}

}  // namespace v0
}  // namespace annulus
