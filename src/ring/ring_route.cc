// Rows go from neighbour to neighbour, each parcel whichever way round is shorter.
//
// A hop carries the rows of one owner that somebody further on that way needs, and each hop carries
// a part of what the one before it did. Where two slots cannot hold what arrives from both sides,
// shards are cut into slices, and each phase sends one slice of all shards around.
#include <algorithm>
#include <cstdint>
#include <iterator>
#include <tuple>

#include "base/work.h"
#include "ring/routes.h"

namespace annulus::ring {
namespace {

using pattern::Interval;
using pattern::IntervalSet;

// One way around: what hop h carries of an owner, h from 1.
struct Way {
  int step = 1;                                // upwards or downwards
  std::vector<std::vector<IntervalSet>> hops;  // [owner][h - 1]: rows of its shard, then places
};

int neighbour(int rank, int step, int ranks) { return (rank + step + ranks) % ranks; }

// What each hop carries in rows of the shards. Of two ways of one length the upward one is taken.
Way find_hops(const Demand& demand, int step) {
  const int ranks = demand.ranks();
  const int farthest = step > 0 ? ranks / 2 : (ranks - 1) / 2;
  Way way = {step, std::vector<std::vector<IntervalSet>>(static_cast<std::size_t>(ranks))};
  IntervalSet united;
  for (int owner = 0; owner < ranks; ++owner) {
    std::vector<IntervalSet>& hops = way.hops[static_cast<std::size_t>(owner)];
    IntervalSet further;  // what ranks from the end of the hop on need
    for (int hop = farthest; hop > 0; --hop) {
      const int user = ((owner + hop * step) % ranks + ranks) % ranks;
      if (const Need* need = demand.needs.find(user, owner)) {
        pattern::unite(further, need->rows, &united);
        further.swap(united);
      }
      base::charge(4 + std::ssize(further));
      if (!further.empty()) hops.push_back(further);
    }
    std::ranges::reverse(hops);
  }
  return way;
}

// Packed rows of an owner that go around in a phase.
Interval slice_of(std::int64_t packed, int phase, int phases, std::int64_t grain) {
  const auto edge = [&](int at) {
    return at == phases ? packed : packed * at / phases / grain * grain;
  };
  return {edge(phase), edge(phase + 1)};
}

// The rounds of one phase: in round h - 1 of it all owners' hop h goes over.
void add_phase(const Demand& demand, const Way& way, std::size_t first_round, int phase, int phases,
               std::int64_t grain, Rounds* rounds) {
  const int ranks = demand.ranks();
  IntervalSet carried;
  for (int owner = 0; owner < ranks; ++owner) {
    const auto at = static_cast<std::size_t>(owner);
    const Interval slice = slice_of(rounds->packed[at].count(), phase, phases, grain);
    if (slice.empty()) continue;
    for (std::size_t hop = 0; hop < way.hops[at].size(); ++hop) {
      pattern::intersect(way.hops[at][hop], {slice}, &carried);
      base::charge(4 + std::ssize(way.hops[at][hop]) + 4 * std::ssize(carried));
      if (carried.empty()) break;
      const auto hops_done = static_cast<int>(hop);
      const int from = ((owner + hops_done * way.step) % ranks + ranks) % ranks;
      const std::size_t round = first_round + hop;
      if (rounds->rounds.size() <= round) rounds->rounds.resize(round + 1);
      for (const Interval& places : carried) {
        rounds->rounds[round].push_back(
            {.from = from,
             .to = neighbour(from, way.step, ranks),
             .owner = owner,
             .from_slot = hop == 0 ? kOwnRows : static_cast<int>((round - 1) % 2),
             .first = places.begin,
             .rows = places.size(),
             .from_row = places.begin});
      }
    }
  }
}

// Finds where relayed rows begin in the slots of those who pass them on. Requires: place().
void find_sources(Rounds* rounds) {
  for (std::size_t t = 1; t < rounds->rounds.size(); ++t) {
    const std::vector<Message>& arrived = rounds->rounds[t - 1];
    base::charge(8 * std::ssize(rounds->rounds[t]));
    for (Message& message : rounds->rounds[t]) {
      if (message.from_slot == kOwnRows) continue;
      // The message that brought the first row: the last one to this rank, of this owner, that
      // begins no later.
      const auto key = [](const Message& other) {
        return std::tuple(other.to, other.owner, other.first);
      };
      const auto behind = std::ranges::upper_bound(
          arrived, std::tuple(message.from, message.owner, message.first), {}, key);
      const Message& source = *std::prev(behind);
      message.from_row = source.to_row + message.first - source.first;
    }
  }
}

bool fits(const Demand& demand, const Rounds& rounds) {
  for (int rank = 0; rank < demand.ranks(); ++rank) {
    const std::int64_t packed = rounds.packed[static_cast<std::size_t>(rank)].count();
    if (rounds.held_rows(rank) > most_held_rows(demand.largest, packed)) return false;
  }
  return true;
}

}  // namespace

void route_around(const Demand& demand, Rounds* rounds) {
  const auto ranks = static_cast<std::size_t>(demand.ranks());
  std::vector<Way> ways = {find_hops(demand, 1), find_hops(demand, -1)};
  for (std::size_t owner = 0; owner < ranks; ++owner) {
    std::vector<const IntervalSet*> takers;
    for (const Way& way : ways) {
      for (const IntervalSet& rows : way.hops[owner]) takers.push_back(&rows);
    }
    rounds->packed[owner] = pack_rows_of(takers);
    for (Way& way : ways) {
      for (IntervalSet& rows : way.hops[owner]) rows = rounds->packed[owner].places_of(rows);
    }
  }
  // Slices of a single row fit, and so the loop ends.
  for (int phases = 1;; ++phases) {
    rounds->rounds.clear();
    const std::int64_t grain = grain_of(demand.largest / phases);
    for (int phase = 0; phase < phases; ++phase) {
      const std::size_t first_round = rounds->rounds.size();
      for (const Way& way : ways) {
        add_phase(demand, way, first_round, phase, phases, grain, rounds);
      }
    }
    place(rounds);
    if (fits(demand, *rounds) || phases >= demand.largest) break;
  }
  find_sources(rounds);
}

}  // namespace annulus::ring
