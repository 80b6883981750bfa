#ifndef ANNULUS_ATTENTION_COST_MAKESPAN_H_
#define ANNULUS_ATTENTION_COST_MAKESPAN_H_

// The cycle in which the last CTA of a launch ends, if works of known lengths are dealt to slots as
// a kernel deals them.

#include <cstdint>

#include "attention/kernels/family.h"
#include "attention/kernels/launch.h"
#include "attention/tiles/tile_counts.h"

namespace annulus::attention {

// How a launch is dealt out. A work is a tile row, or a part of one, of one group of heads; a slot
// computes one work at a time.
struct Dealing {
  Deal deal = Deal::kFree;  // kCounter deals as kFree does
  std::int64_t slots = 1;
  int cluster = 1;       // CTAs of a slot; they take one row of several heads, or several rows
  std::int64_t set = 1;  // groups of heads whose rows of one order are taken together
  bool longest_first = true;
  HeadStart head_start = {};  // the head start, if works are not counted off
  // The cost of a head start: rows with a head start read their tiles of all sets at a time. L2
  // holds the tiles of `held_sets` sets. The device's memory delivers one tile in `memory_tile`
  // cycles.
  double held_sets = 1;
  double memory_tile = 0;
};

// The number of cycles until all works have ended. A work takes `frame` cycles, and `step` cycles
// for each tile. Works come set by set; within a set, the longest rows of all its groups come
// first, or the first rows do. A head start adds the time by which the memory is busy with its rows
// for longer than the slots are. If the lengths of rows are not listed (tile_counts.h), the
// estimate is then the mean of the slots plus half of the longest work, and at least the longest
// work.
double makespan(const TileCounts& tiles, const Dealing& dealing, double frame, double step);

// Whether drawing works from a counter, which costs `clear` cycles for setting the counter, ends
// sooner than counting them off (Deal::kStride), by more than half a percent. Both ways are
// computed work by work, unless bounds decide.
bool drawing_pays(const TileCounts& tiles, const Dealing& dealing, double frame, double step,
                  double clear);

// The head start whose launch ends soonest, or no head start if none saves one percent. A head
// start can help only launches whose number of sets makes them end unevenly.
HeadStart choose_head_start(const TileCounts& tiles, Dealing dealing, double frame, double step);

}  // namespace annulus::attention

#endif  // ANNULUS_ATTENTION_COST_MAKESPAN_H_
