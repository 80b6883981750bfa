#ifndef ANNULUS_RING_ROUTES_H_
#define ANNULUS_RING_ROUTES_H_

// The routes of rounds.h, and their shared parts.

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "ring/rounds.h"

namespace annulus::ring {

struct Demand {
  const Needs& needs;
  std::int64_t largest = 0;  // the rows of the largest shard

  int ranks() const { return needs.ranks(); }
};

// Parcels are cut at multiples of this number of rows. It is 128, or the largest power of two of
// which a slot holds at least sixteen, so that little of a slot stays empty.
std::int64_t grain_of(std::int64_t slot_rows);

// The numbers by which two routes are compared.
struct RouteSize {
  std::int64_t rows_sent = 0;
  std::size_t rounds = 0;
  std::int64_t max_held = 0;  // rows, of the rank that holds the most
};

// Fills in `packed`, `rounds` and `slot_rows`.
void route_directly(const Demand& demand, Rounds* rounds);

// Consecutive hops of an owner's rows: from the hop after the leg before, up to hop `last`. The
// first hop is 1. All hops of a leg carry the same rows, a subset of the rows of the leg before.
struct RingLeg {
  int last = 0;
  // rows of the owner's shard at first; later places among its packed rows
  pattern::IntervalSet rows;
};

struct RingWay {
  int step = 1;                            // 1: upwards, -1: downwards, to the next rank
  std::vector<std::vector<RingLeg>> legs;  // [owner], by ascending hops
};

// The route from neighbour to neighbour. It has more messages than the direct route, so its size is
// computed without writing the messages.
class RingRoute {
 public:
  explicit RingRoute(const Demand& demand);

  const RouteSize& size() const { return size_; }
  // Fills in `packed`, `rounds` and `slot_rows`.
  void write(Rounds* rounds) const;

 private:
  void measure();
  bool fits() const;
  std::int64_t held_rows(std::size_t rank) const;
  // The packed rows of an owner that travel in a phase.
  pattern::Interval slice_of(std::size_t owner, int phase) const;
  void write_phase(int phase, Rounds* rounds) const;

  int ranks_;
  std::int64_t largest_;
  std::array<RingWay, 2> ways_;
  std::vector<PackedRows> packed_;
  int phases_ = 0;
  RouteSize size_;
  std::vector<int> hops_;  // [phase]
  std::vector<std::array<std::int64_t, 2>> slot_rows_;
};

// Computes the first row of each message in the receiver's slot, and the rows that the slots must
// hold. Requires: the messages of each round are sorted by receiver, owner and first row.
void place(Rounds* rounds);

// The largest distance that a parcel travels around the ring by the shorter way.
int farthest(const Demand& demand);

}  // namespace annulus::ring

#endif  // ANNULUS_RING_ROUTES_H_
