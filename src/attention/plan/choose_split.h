#ifndef ANNULUS_ATTENTION_PLAN_CHOOSE_SPLIT_H_
#define ANNULUS_ATTENTION_PLAN_CHOOSE_SPLIT_H_

// Whether long tile rows are split over several CTAs, and into how many parts
// (attention/tiles/kv_split.h).

#include <string>

#include "attention/kernels/device_limits.h"
#include "attention/kernels/kernel_source.h"
#include "attention/kernels/launch.h"
#include "attention/tiles/kv_split.h"

namespace annulus::attention {

// The split of a plan's rows, and why.
struct SplitChoice {
  KvSplit split;
  std::string reason;  // empty if nobody asked or there is no tile
};

// Everything that the choice depends on.
struct SplitQuestion {
  const Problem& problem;
  const KernelConfig& config;
  const TileList& tiles;
  const WorkGroup& group;
  const KernelFeatures& features;
  const DeviceLimits& limits;
};

// Chooses a split. `parts`: 0 takes the split for which the pipe model predicts the least time, if
// that is clearly less than without a split, among those of up to `max_parts` parts (0: any); 1
// splits nothing; any other number is that of the longest row's parts. Throws Error{kUnsupported}
// for more parts than lists hold.
SplitChoice choose_split(const SplitQuestion& question, int parts, int max_parts = 0);

}  // namespace annulus::attention

#endif  // ANNULUS_ATTENTION_PLAN_CHOOSE_SPLIT_H_
