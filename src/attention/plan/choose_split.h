#ifndef ANNULUS_ATTENTION_PLAN_CHOOSE_SPLIT_H_
#define ANNULUS_ATTENTION_PLAN_CHOOSE_SPLIT_H_

// Whether long tile rows are split over several CTAs, and how far: kv_split.h says what that is.

#include <string>

#include "attention/kernels/device_limits.h"
#include "attention/kernels/kernel_source.h"
#include "attention/kernels/launch.h"
#include "attention/tiles/kv_split.h"

namespace annulus::attention {

// A plan's rows and what the model says about splitting them.
struct SplitChoice {
  KvSplit split;
  std::string reason;  // empty where nobody asked or there is no tile
};

// What the answer depends on.
struct SplitQuestion {
  const Problem& problem;
  const KernelConfig& config;
  const TileList& tiles;
  const WorkGroup& group;
  const KernelFeatures& features;
  const DeviceLimits& limits;
};

// The split by which the pipe model predicts the least time, if that is clearly less than without.
// `parts`: 0 to ask the model, 1 for none, otherwise the parts of the longest row. Throws
// Error{kUnsupported} where the parts would be more than lists hold.
SplitChoice choose_split(const SplitQuestion& question, int parts);

}  // namespace annulus::attention

#endif  // ANNULUS_ATTENTION_PLAN_CHOOSE_SPLIT_H_
