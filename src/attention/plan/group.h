#ifndef ANNULUS_ATTENTION_PLAN_GROUP_H_
#define ANNULUS_ATTENTION_PLAN_GROUP_H_

// Which heads and tile rows a configuration computes together, decided from the tiles themselves.
//
// The heads of one CTA or cluster have to share a list and a head of K and V; tile rows of a
// cluster have to make the same steps. Only this file decides whether they do. The heuristic has to
// choose a configuration before there is a list, so it relies on facts about the pattern
// (attention/tiles/pattern_facts.h). If the tiles do not agree with these facts, the plan takes its
// second choice.

#include <optional>
#include <string>

#include "attention/kernels/kernel_source.h"
#include "attention/kernels/launch.h"
#include "attention/tiles/tile_list.h"

namespace annulus::attention {

struct Grouping {
  std::optional<WorkGroup> group;  // nullopt if the tiles forbid what the configuration computes
                                   // together
  std::string why_not;             // in that case, a sentence that names the heads
};

// Requires: `tiles` are the problem's tiles, of the configuration's size.
Grouping group_of(const KernelConfig& config, const Problem& problem, const TileList& tiles,
                  const KernelFeatures& features);

}  // namespace annulus::attention

#endif  // ANNULUS_ATTENTION_PLAN_GROUP_H_
