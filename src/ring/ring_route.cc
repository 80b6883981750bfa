// The ring route: rows travel from neighbour to neighbour. Each parcel takes the shorter of the two
// ways around.
//
// A hop carries those rows of one owner that a rank further along the way needs. So each hop
// carries a subset of the rows of the hop before it. If two slots cannot hold what arrives from
// both sides, shards are cut into slices, and each phase sends one slice of all shards around.
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

// The rank that is `hops` above an owner around the ring, or below it if `hops` is negative.
int rank_at(int owner, int hops, int ranks) { return ((owner + hops) % ranks + ranks) % ranks; }

// The rows of an owner that one user needs.
struct Use {
  int user = 0;
  const IntervalSet* rows = nullptr;
};

std::vector<std::vector<Use>> uses_of_owners(const Demand& demand) {
  std::vector<std::vector<Use>> uses(static_cast<std::size_t>(demand.ranks()));
  for (int user = 0; user < demand.ranks(); ++user) {
    base::charge(2 * std::ssize(demand.needs.of(user)));
    for (const Need& need : demand.needs.of(user)) {
      if (need.owner == user) continue;
      uses[static_cast<std::size_t>(need.owner)].push_back({user, &need.rows});
    }
  }
  return uses;
}

// The legs of each owner's rows, as rows of its shard. If both ways have the same length, the
// upward way is taken.
RingWay find_legs(const std::vector<std::vector<Use>>& uses, int step) {
  const int ranks = static_cast<int>(uses.size());
  const int farthest = step > 0 ? ranks / 2 : (ranks - 1) / 2;
  RingWay way = {step, std::vector<std::vector<RingLeg>>(uses.size())};
  std::vector<const IntervalSet*> needed(static_cast<std::size_t>(farthest) + 1);  // [hop]
  for (int owner = 0; owner < ranks; ++owner) {
    std::ranges::fill(needed, nullptr);
    base::charge(farthest);
    for (const Use& use : uses[static_cast<std::size_t>(owner)]) {
      const int hop = rank_at(0, (use.user - owner) * step, ranks);
      if (hop <= farthest) needed[static_cast<std::size_t>(hop)] = use.rows;
    }
    std::vector<RingLeg>& legs = way.legs[static_cast<std::size_t>(owner)];
    IntervalSet further, united;  // the rows that the ranks from the end of the hop on need
    for (int hop = farthest; hop > 0; --hop) {
      const IntervalSet* rows = needed[static_cast<std::size_t>(hop)];
      if (rows == nullptr) continue;
      pattern::unite(further, *rows, &united);
      base::charge(8 + std::ssize(united));
      if (united == further) continue;
      further.swap(united);
      legs.push_back({hop, further});
    }
    std::ranges::reverse(legs);
  }
  return way;
}

// Packs each owner's rows so that the rows of a hop are one range, if an order allows it. Replaces
// the rows of the legs by their places among the packed rows.
std::vector<PackedRows> pack_rows(std::array<RingWay, 2>* ways) {
  std::vector<PackedRows> packed;
  for (std::size_t owner = 0; owner < ways->front().legs.size(); ++owner) {
    std::vector<const IntervalSet*> takers;  // one for each hop
    for (const RingWay& way : *ways) {
      int hops = 0;
      for (const RingLeg& leg : way.legs[owner]) {
        takers.insert(takers.end(), static_cast<std::size_t>(leg.last - hops), &leg.rows);
        hops = leg.last;
      }
    }
    packed.push_back(pack_rows_of(takers));
    for (RingWay& way : *ways) {
      for (RingLeg& leg : way.legs[owner]) leg.rows = packed.back().places_of(leg.rows);
    }
  }
  return packed;
}

// Finds where relayed rows begin in the slots of the ranks that pass them on. Requires: place() was
// called.
void find_sources(Rounds* rounds) {
  for (std::size_t t = 1; t < rounds->rounds.size(); ++t) {
    const std::vector<Message>& arrived = rounds->rounds[t - 1];
    base::charge(8 * std::ssize(rounds->rounds[t]));
    for (Message& message : rounds->rounds[t]) {
      if (message.from_slot == kOwnRows) continue;
      // The message that brought the first row: the last message to this rank and of this owner
      // that does not begin later.
      const auto key = [](const Message& other) {
        return std::tuple(other.to, other.owner, other.first);
      };
      const auto after = std::ranges::upper_bound(
          arrived, std::tuple(message.from, message.owner, message.first), {}, key);
      const Message& source = *std::prev(after);
      message.from_row = source.to_row + message.first - source.first;
    }
  }
}

}  // namespace

RingRoute::RingRoute(const Demand& demand) : ranks_(demand.ranks()), largest_(demand.largest) {
  const std::vector<std::vector<Use>> uses = uses_of_owners(demand);
  ways_ = {find_legs(uses, 1), find_legs(uses, -1)};
  packed_ = pack_rows(&ways_);
  // Slices of a single row always fit, so the loop ends.
  do {
    ++phases_;
    measure();
  } while (!fits() && phases_ < largest_);
  for (std::size_t rank = 0; rank < packed_.size(); ++rank) {
    size_.max_held = std::max(size_.max_held, held_rows(rank));
  }
}

Interval RingRoute::slice_of(std::size_t owner, int phase) const {
  const std::int64_t rows = packed_[owner].count(), grain = grain_of(largest_ / phases_);
  const auto edge = [&](int at) {
    return at == phases_ ? rows : rows * at / phases_ / grain * grain;
  };
  return {edge(phase), edge(phase + 1)};
}

std::int64_t RingRoute::held_rows(std::size_t rank) const {
  return packed_[rank].count() + slot_rows_[rank][0] + slot_rows_[rank][1];
}

bool RingRoute::fits() const {
  for (std::size_t rank = 0; rank < packed_.size(); ++rank) {
    if (held_rows(rank) > max_held_rows(largest_, packed_[rank].count())) return false;
  }
  return true;
}

// Computes the size of the route and of the slots for the current number of phases.
void RingRoute::measure() {
  const auto ranks = static_cast<std::size_t>(ranks_);
  size_ = {};
  hops_.clear();
  slot_rows_.assign(ranks, {0, 0});
  std::vector<std::int64_t> received;  // [hop - 1][rank]: rows in a phase
  IntervalSet carried;
  for (int phase = 0; phase < phases_; ++phase) {
    received.assign(static_cast<std::size_t>(ranks_ / 2 + 1) * ranks, 0);
    int max_hops = 0;
    for (const RingWay& way : ways_) {
      for (int owner = 0; owner < ranks_; ++owner) {
        const Interval slice = slice_of(static_cast<std::size_t>(owner), phase);
        if (slice.empty()) continue;
        int hop = 0;
        for (const RingLeg& leg : way.legs[static_cast<std::size_t>(owner)]) {
          pattern::intersect(leg.rows, {slice}, &carried);
          base::charge(8 + std::ssize(leg.rows) + (leg.last - hop) / 2);
          if (carried.empty()) break;
          const std::int64_t rows = pattern::size(carried);
          size_.rows_sent += rows * (leg.last - hop);
          while (hop < leg.last) {
            const std::size_t first = static_cast<std::size_t>(hop) * ranks;
            ++hop;
            received[first + static_cast<std::size_t>(rank_at(owner, hop * way.step, ranks_))] +=
                rows;
          }
        }
        max_hops = std::max(max_hops, hop);
      }
    }
    base::charge(static_cast<std::int64_t>(received.size() / 4));
    for (std::size_t hop = 0; hop < static_cast<std::size_t>(max_hops); ++hop) {
      for (std::size_t rank = 0; rank < ranks; ++rank) {
        std::int64_t& slot = slot_rows_[rank][(size_.rounds + hop) % 2];
        slot = std::max(slot, received[hop * ranks + rank]);
      }
    }
    size_.rounds += static_cast<std::size_t>(max_hops);
    hops_.push_back(max_hops);
  }
}

// Appends the rounds of a phase. Round h - 1 of the phase has hop h of all owners.
void RingRoute::write_phase(int phase, Rounds* rounds) const {
  const auto ranks = static_cast<std::size_t>(ranks_);
  // The rows of an owner that the current hop carries.
  struct Carried {
    std::size_t leg = 0;
    IntervalSet places;
  };
  std::array<std::vector<Carried>, 2> carried;  // [way][owner]
  const auto set_places = [&](std::size_t way, std::size_t owner) {
    Carried& at = carried[way][owner];
    const std::vector<RingLeg>& legs = ways_[way].legs[owner];
    const Interval slice = slice_of(owner, phase);
    if (at.leg == legs.size() || slice.empty()) return at.places.clear();
    base::charge(8 + std::ssize(legs[at.leg].rows));
    pattern::intersect(legs[at.leg].rows, {slice}, &at.places);
  };
  for (const std::size_t way : {std::size_t{0}, std::size_t{1}}) {
    carried[way].resize(ranks);
    for (std::size_t owner = 0; owner < ranks; ++owner) set_places(way, owner);
  }
  for (int hop = 1; hop <= hops_[static_cast<std::size_t>(phase)]; ++hop) {
    const std::size_t round = rounds->rounds.size();
    std::vector<Message>& messages = rounds->rounds.emplace_back();
    for (int to = 0; to < ranks_; ++to) {
      // The two owners whose rows arrive, the lower one first.
      std::array<std::pair<int, std::size_t>, 2> arriving;
      for (const std::size_t way : {std::size_t{0}, std::size_t{1}}) {
        arriving[way] = {rank_at(to, -hop * ways_[way].step, ranks_), way};
      }
      std::ranges::sort(arriving);
      for (const auto& [owner, way] : arriving) {
        const auto at = static_cast<std::size_t>(owner);
        Carried& now = carried[way][at];
        const std::vector<RingLeg>& legs = ways_[way].legs[at];
        base::charge(2 + 2 * std::ssize(now.places));
        for (const Interval& places : now.places) {
          messages.push_back({.from = rank_at(to, -ways_[way].step, ranks_),
                              .to = to,
                              .owner = owner,
                              .from_slot = hop == 1 ? kOwnRows : static_cast<int>((round + 1) % 2),
                              .first = places.begin,
                              .rows = places.size(),
                              .from_row = places.begin});
        }
        if (now.leg < legs.size() && legs[now.leg].last == hop) {
          ++now.leg;
          set_places(way, at);
        }
      }
    }
  }
}

void RingRoute::write(Rounds* rounds) const {
  rounds->packed = packed_;
  for (int phase = 0; phase < phases_; ++phase) write_phase(phase, rounds);
  place(rounds);
  find_sources(rounds);
}

}  // namespace annulus::ring
