#ifndef ANNULUS_RING_ROUTES_H_
#define ANNULUS_RING_ROUTES_H_

// The routes of rounds.h, and what they share.

#include <cstdint>
#include <vector>

#include "ring/rounds.h"

namespace annulus::ring {

struct Demand {
  const Needs& needs;
  std::int64_t largest = 0;  // the rows of the largest shard

  int ranks() const { return needs.ranks(); }
};

// Parcels are cut at multiples of this many rows: 128, or the largest power of two of which a slot
// holds sixteen, so that little of a slot stays empty.
std::int64_t grain_of(std::int64_t slot_rows);

// The two routes: they fill in `packed`, `rounds` and `slot_rows`.
void route_directly(const Demand& demand, Rounds* rounds);
void route_around(const Demand& demand, Rounds* rounds);

// Sorts the messages of each round and finds where they begin in the receivers' slots, and how much
// the slots must hold.
void place(Rounds* rounds);

// The largest distance that a parcel goes around the ring, the shorter way.
int farthest(const Demand& demand);

}  // namespace annulus::ring

#endif  // ANNULUS_RING_ROUTES_H_
