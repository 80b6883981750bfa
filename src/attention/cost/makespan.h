#ifndef ANNULUS_ATTENTION_COST_MAKESPAN_H_
#define ANNULUS_ATTENTION_COST_MAKESPAN_H_

// When the last CTA of a launch ends, if works of known lengths are dealt to slots as a kernel
// deals them.

#include <cstdint>

#include "attention/kernels/family.h"
#include "attention/tiles/tile_counts.h"

namespace annulus::attention {

// How a launch is dealt out. A work is a tile row, or a part of one, of one group of heads; a slot
// computes one work at a time.
struct Dealing {
  Deal deal = Deal::kFree;  // kCounter deals as kFree does
  std::int64_t slots = 1;
  int cluster = 1;       // CTAs of a slot, which take one row of several heads, or several rows
  std::int64_t set = 1;  // groups of heads whose rows of one order are taken together
  bool longest_first = true;
};

// The cycles until all works have ended. A work takes `frame` cycles, and `step` cycles for each
// tile. Works come set by set; within a set the longest rows of all its groups first, or the first.
// Where the lengths of rows are not listed (tile_counts.h), the estimate is
// then the mean of the slots plus half of the longest work, and at least the longest work.
double makespan(const TileCounts& tiles, const Dealing& dealing, double frame, double step);

// Whether drawing works from a counter, which costs `clear` cycles for setting the counter, ends
// sooner than counting them off (Deal::kStride), by more than half a percent. Both are dealt out to
// the last work, except where bounds decide.
bool drawing_pays(const TileCounts& tiles, const Dealing& dealing, double frame, double step,
                  double clear);

}  // namespace annulus::attention

#endif  // ANNULUS_ATTENTION_COST_MAKESPAN_H_
