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

// The split of a plan's rows, and the reason for it.
struct SplitChoice {
  KvSplit split;
  std::string reason;  // empty if the caller did not ask for a choice, or there is no tile
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

// Chooses a split. `parts` is the number of parts of the longest row; 1 splits nothing. With 0, the
// function takes the split with the least time that the pipe model predicts, if that is clearly
// less than without a split; it considers up to `max_parts` parts (0: any number). Throws
// Error{kUnsupported} for more parts than the lists can hold.
SplitChoice choose_split(const SplitQuestion& question, int parts, int max_parts = 0);

}  // namespace annulus::attention

#endif  // ANNULUS_ATTENTION_PLAN_CHOOSE_SPLIT_H_
