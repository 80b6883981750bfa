// The listing of tuned results, which needs no tuner.
#include <utility>

#include "annulus/tune.h"
#include "api/tuned_text.h"
#include "autotune/device_key.h"
#include "autotune/listing.h"
#include "autotune/store.h"
#include "base/env.h"

namespace annulus::inline v0 {

// Converts what autotune/listing.h finds to the public structs.
TunedListing list_tuned(const std::optional<std::string>& tuned_path) {
  TunedListing told;
  told.folders =
      autotune::split_path(tuned_path ? base::tuned_path_of(*tuned_path)
                                      : base::default_tuned_path(base::read_environment()));
  base::FileSystem files;
  autotune::Listing listing = autotune::list_entries(files, told.folders);
  told.ignored = std::move(listing.ignored);
  for (autotune::ListedEntry& listed : listing.entries) {
    const autotune::Entry& entry = listed.entry;
    const autotune::Entry::Origin& origin = entry.origin;
    TunedEntry each;
    each.path = std::move(listed.path);
    each.device = std::move(listed.device);
    each.shape = autotune::to_string(entry.shape);
    each.kind = autotune::kind_text(entry.shape);
    each.config = attention::to_string(entry.config);
    each.runner_up = api::name_of(entry.runner_up);
    each.predicted = entry.predicted;
    each.complete = entry.complete;
    each.time = api::told(entry.time, entry.predicted);
    each.default_time = api::told(entry.default_time, entry.predicted);
    each.ratio_low = static_cast<double>(entry.ratio_low_ppm) / 1e6;
    each.ratio_high = static_cast<double>(entry.ratio_high_ppm) / 1e6;
    each.rounds = entry.rounds;
    each.candidates = entry.candidates;
    each.library_version = origin.library_version;
    each.driver_version = origin.driver_version;
    each.when = origin.when;
    each.batch = origin.batch;
    each.heads = origin.heads;
    each.kv_heads = origin.kv_heads;
    each.seq_q = origin.seq_q;
    each.seq_k = origin.seq_k;
    told.entries.push_back(std::move(each));
  }
  return told;
}

std::string why_unused(const TunedEntry& entry, const DeviceInfo& device) {
  return autotune::why_other(entry.device, device.tuned_key);
}

}  // namespace annulus::inline v0
