#ifndef ANNULUS_ATTENTION_PLAN_GROUP_H_
#define ANNULUS_ATTENTION_PLAN_GROUP_H_

// Which heads and tile rows a configuration computes together, decided from the tiles themselves.
//
// Heads of one CTA or cluster have to share a list and a head of K and V; tile rows of a cluster
// have to make the same steps. Only this file decides whether they do. The heuristic has to choose
// a configuration before there is a list, and relies on what the pattern promises
// (attention/tiles/pattern_facts.h); if the tiles turn out otherwise, the plan takes its second
// choice.

#include <optional>
#include <string>

#include "attention/kernels/kernel_source.h"
#include "attention/kernels/launch.h"
#include "attention/tiles/tile_list.h"

namespace annulus::attention {

struct Grouping {
  std::optional<WorkGroup> group;  // nothing if the tiles forbid what the configuration does
  std::string why_not;             // then: a sentence that names the heads
};

// Requires: `tiles` are those of the problem for the configuration's tile.
Grouping group_of(const KernelConfig& config, const Problem& problem, const TileList& tiles,
                  const KernelFeatures& features);

}  // namespace annulus::attention

#endif  // ANNULUS_ATTENTION_PLAN_GROUP_H_
