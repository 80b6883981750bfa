// Rows go from their owner to their user in one hop.
//
// Who sends to whom in which round is a colouring of the edges owner -> user, in which a round is a
// colour, a rank may receive as many edges of a colour as fit in a slot, and send about its share
// of what it sends altogether. Edges are taken in the order of the distance from owner to user, so
// that where all ranks need alike, each sends and receives the same in every round; or from the
// largest on. A first fit by one of these orders is tried with few rounds and little sending in a
// round first, then with more.
#include <algorithm>
#include <cstdint>
#include <functional>
#include <limits>
#include <numeric>
#include <utility>

#include "base/math.h"
#include "base/work.h"
#include "ring/routes.h"

namespace annulus::ring {
namespace {

using pattern::Interval;
using pattern::IntervalSet;

struct Parcel {
  int owner = 0;
  int user = 0;
  int distance = 0;    // from the owner to the user, upwards around the ring
  IntervalSet places;  // among the owner's packed rows
  std::int64_t rows = 0;
};

// `rows` rows of a parcel from its row `first` on, in a round.
struct Part {
  std::size_t parcel = 0;
  std::size_t round = 0;
  std::int64_t first = 0;
  std::int64_t rows = 0;
};

void pack_rows(const Demand& demand, Rounds* rounds) {
  std::vector<std::vector<const IntervalSet*>> takers(static_cast<std::size_t>(demand.ranks()));
  for (int user = 0; user < demand.ranks(); ++user) {
    for (const Need& need : demand.needs.of(user)) {
      if (need.owner != user) takers[static_cast<std::size_t>(need.owner)].push_back(&need.rows);
    }
  }
  for (std::size_t owner = 0; owner < takers.size(); ++owner) {
    rounds->packed[owner] = pack_rows_of(takers[owner]);
  }
}

// In the order of distance, then of users.
std::vector<Parcel> parcels_of(const Demand& demand, const Rounds& rounds) {
  std::vector<Parcel> parcels;
  for (int user = 0; user < demand.ranks(); ++user) {
    for (const Need& need : demand.needs.of(user)) {
      if (need.owner == user) continue;
      const int distance = (user - need.owner + demand.ranks()) % demand.ranks();
      parcels.push_back({need.owner, user, distance,
                         rounds.packed[static_cast<std::size_t>(need.owner)].places_of(need.rows),
                         pattern::size(need.rows)});
    }
  }
  std::ranges::stable_sort(parcels, {}, &Parcel::distance);
  return parcels;
}

// One attempt to put all parcels into a number of rounds.
class Filling {
 public:
  struct Bounds {
    std::size_t rounds = 1;
    std::vector<std::int64_t> receive[2];  // [slot][rank]: rows in a round
    std::vector<std::int64_t> send;        // [rank]: rows in a round
    std::int64_t grain = 1;
    bool halves = false;  // parcels are cut in halves or not at all
  };

  Filling(const std::vector<Parcel>& parcels, const Bounds& bounds)
      : parcels_(parcels),
        bounds_(bounds),
        ranks_(bounds.send.size()),
        received_(bounds.rounds * ranks_, 0),
        sent_(bounds.rounds * ranks_, 0),
        open_(ranks_, 0) {}

  // The parts in the order in which they were put, or none where they do not fit. Requires: there
  // are parcels.
  std::vector<Part> fill(const std::vector<std::size_t>& order) {
    for (const std::size_t parcel : order) {
      if (!put(parcel)) return {};
    }
    return std::move(parts_);
  }

 private:
  std::int64_t capacity(int user, std::size_t round) const {
    return bounds_.receive[round % 2][static_cast<std::size_t>(user)];
  }
  std::int64_t& received(int user, std::size_t round) {
    return received_[round * ranks_ + static_cast<std::size_t>(user)];
  }
  std::int64_t& sent(int owner, std::size_t round) {
    return sent_[round * ranks_ + static_cast<std::size_t>(owner)];
  }
  // How much more the round takes of the parcel.
  std::int64_t room(const Parcel& parcel, std::size_t round) {
    return std::min(
        capacity(parcel.user, round) - received(parcel.user, round),
        bounds_.send[static_cast<std::size_t>(parcel.owner)] - sent(parcel.owner, round));
  }

  bool put(std::size_t index) {
    const Parcel& parcel = parcels_[index];
    std::size_t& open = open_[static_cast<std::size_t>(parcel.user)];
    while (open < bounds_.rounds && received(parcel.user, open) == capacity(parcel.user, open)) {
      ++open;
    }
    base::charge(1);
    if (bounds_.halves) return put_in_halves(index);
    for (std::int64_t first = 0; first < parcel.rows;) {
      const std::int64_t left = parcel.rows - first;
      const std::size_t round = first_round(parcel, left);
      if (round == bounds_.rounds) return false;
      const std::int64_t space = room(parcel, round);
      const std::int64_t rows = space >= left ? left : base::round_down(space, bounds_.grain);
      add(index, round, first, rows);
      first += rows;
    }
    return true;
  }

  // The first round that takes so many rows of the parcel; else the first one that the user has to
  // itself; else the first one that takes any.
  std::size_t first_round(const Parcel& parcel, std::int64_t rows) {
    std::size_t fresh = bounds_.rounds;
    std::size_t any = bounds_.rounds;
    const std::size_t open = open_[static_cast<std::size_t>(parcel.user)];
    base::charge(static_cast<std::int64_t>(1 + bounds_.rounds - open));
    for (std::size_t round = open; round < bounds_.rounds; ++round) {
      const std::int64_t space = room(parcel, round);
      if (space >= rows) return round;
      if (fresh == bounds_.rounds && received(parcel.user, round) == 0 &&
          space == capacity(parcel.user, round)) {
        fresh = round;
      }
      if (any == bounds_.rounds && space >= bounds_.grain) any = round;
    }
    return fresh < bounds_.rounds ? fresh : any;
  }

  bool put_in_halves(std::size_t index) {
    const Parcel& parcel = parcels_[index];
    if (put_whole(index, 0, parcel.rows)) return true;
    std::int64_t first = parcel.rows - base::round_down(parcel.rows / 2, bounds_.grain);
    const std::int64_t most = capacity(parcel.user, 0);
    if (first > most) first = base::round_down(most, bounds_.grain);
    return put_whole(index, 0, first) && put_whole(index, first, parcel.rows - first);
  }
  bool put_whole(std::size_t index, std::int64_t first, std::int64_t rows) {
    const Parcel& parcel = parcels_[index];
    const std::size_t open = open_[static_cast<std::size_t>(parcel.user)];
    std::size_t round = open;
    while (round < bounds_.rounds && room(parcel, round) < rows) ++round;
    base::charge(static_cast<std::int64_t>(1 + round - open));
    if (round == bounds_.rounds || rows == 0) return false;
    add(index, round, first, rows);
    return true;
  }

  void add(std::size_t index, std::size_t round, std::int64_t first, std::int64_t rows) {
    parts_.push_back({index, round, first, rows});
    received(parcels_[index].user, round) += rows;
    sent(parcels_[index].owner, round) += rows;
  }

  const std::vector<Parcel>& parcels_;
  const Bounds& bounds_;
  const std::size_t ranks_;
  std::vector<std::int64_t> received_, sent_;  // [round][rank]
  std::vector<std::size_t> open_;              // [rank]: rounds before this one are full
  std::vector<Part> parts_;
};

class RoundSearch {
 public:
  RoundSearch(const Demand& demand, const Rounds& rounds, const std::vector<Parcel>& parcels)
      : demand_(demand), rounds_(rounds), parcels_(parcels) {
    const auto ranks = static_cast<std::size_t>(demand.ranks());
    to_receive_.assign(ranks, 0);
    to_send_.assign(ranks, 0);
    for (const Parcel& parcel : parcels) {
      to_receive_[static_cast<std::size_t>(parcel.user)] += parcel.rows;
      to_send_[static_cast<std::size_t>(parcel.owner)] += parcel.rows;
    }
    by_distance_.resize(parcels.size());
    std::iota(by_distance_.begin(), by_distance_.end(), std::size_t{0});
    by_size_ = by_distance_;
    std::ranges::stable_sort(by_size_, std::greater<>(),
                             [&](std::size_t i) { return parcels[i].rows; });
  }

  std::vector<Part> find() {
    if (fits_one_round()) return in_one_round();
    set_slots();
    const std::size_t fewest = fewest_rounds();
    std::vector<Part> parts = find(fewest, std::numeric_limits<std::size_t>::max());
    if (!is_crowded(parts)) return parts;
    bounds_.halves = true;
    std::vector<Part> halves = find(fewest, bounds_.rounds + 1 + bounds_.rounds / 50);
    return halves.empty() || is_crowded(halves) ? parts : halves;
  }

 private:
  std::int64_t budget(std::size_t rank) const {
    const std::int64_t packed = rounds_.packed[rank].count();
    return most_held_rows(demand_.largest, packed) - packed;
  }

  // With as few rounds as possible, and then as little sending in a round; none where more than
  // `most` rounds are needed.
  std::vector<Part> find(std::size_t fewest, std::size_t most) {
    for (bounds_.rounds = fewest; bounds_.rounds <= most; ++bounds_.rounds) {
      std::vector<Part> parts = fill(std::numeric_limits<std::int64_t>::max());
      if (parts.empty()) continue;
      // What a rank sends in a round, in quarters of its share.
      for (const std::int64_t quarters : {4, 5, 6, 8, 12, 16}) {
        std::vector<Part> bounded = fill(quarters);
        if (!bounded.empty()) return bounded;
      }
      return parts;
    }
    return {};
  }

  // Whether some rank receives parts of more than two parcels in a round.
  bool is_crowded(const std::vector<Part>& parts) const {
    std::vector<int> count(bounds_.rounds * to_receive_.size(), 0);
    return std::ranges::any_of(parts, [&](const Part& part) {
      const auto user = static_cast<std::size_t>(parcels_[part.parcel].user);
      const std::size_t at = part.round * to_receive_.size() + user;
      return ++count[at] > 2;
    });
  }

  bool fits_one_round() const {
    for (std::size_t rank = 0; rank < to_receive_.size(); ++rank) {
      if (to_receive_[rank] > budget(rank)) return false;
    }
    return true;
  }
  std::vector<Part> in_one_round() const {
    std::vector<Part> parts;
    for (std::size_t i = 0; i < parcels_.size(); ++i) parts.push_back({i, 0, 0, parcels_[i].rows});
    return parts;
  }

  // Shares the rows that a rank may hold out between its slots. Slot 0 gets what is over.
  void set_slots() {
    std::int64_t least = std::numeric_limits<std::int64_t>::max();
    for (std::size_t rank = 0; rank < to_receive_.size(); ++rank) {
      least = std::min(least, budget(rank) / 2);
    }
    bounds_.grain = grain_of(least);
    for (std::size_t rank = 0; rank < to_receive_.size(); ++rank) {
      const std::int64_t odd = base::round_down(budget(rank) / 2, bounds_.grain);
      bounds_.receive[0].push_back(budget(rank) - odd);
      bounds_.receive[1].push_back(odd);
    }
  }

  std::size_t fewest_rounds() const {
    std::int64_t most = 1;
    for (std::size_t rank = 0; rank < to_receive_.size(); ++rank) {
      const std::int64_t even = bounds_.receive[0][rank], both = even + bounds_.receive[1][rank];
      const std::int64_t pairs = to_receive_[rank] / both, rest = to_receive_[rank] % both;
      most = std::max(most, 2 * pairs + (rest > even ? 2 : rest > 0 ? 1 : 0));
    }
    return static_cast<std::size_t>(most);
  }

  std::vector<Part> fill(std::int64_t quarters) {
    base::charge(static_cast<std::int64_t>(bounds_.rounds * to_send_.size() / 8));
    bounds_.send.clear();
    for (std::size_t rank = 0; rank < to_send_.size(); ++rank) {
      if (quarters == std::numeric_limits<std::int64_t>::max()) {
        bounds_.send.push_back(quarters);
        continue;
      }
      const std::int64_t share =
          base::ceil_div(to_send_[rank], static_cast<std::int64_t>(bounds_.rounds));
      // No less than the largest message, which fills a slot.
      bounds_.send.push_back(std::max(base::round_up(share * quarters / 4, bounds_.grain),
                                      std::ranges::max(bounds_.receive[0])));
    }
    std::vector<Part> parts = Filling(parcels_, bounds_).fill(by_distance_);
    return parts.empty() ? Filling(parcels_, bounds_).fill(by_size_) : parts;
  }

  const Demand& demand_;
  const Rounds& rounds_;
  const std::vector<Parcel>& parcels_;
  std::vector<std::int64_t> to_receive_, to_send_;  // [rank]
  std::vector<std::size_t> by_distance_, by_size_;  // indices of parcels
  Filling::Bounds bounds_;
};

// The messages of a part: one for each range of packed rows that it touches.
void add_messages(const Parcel& parcel, const Part& part, std::vector<Message>* round) {
  base::charge(4 * std::ssize(parcel.places));
  std::int64_t row = 0;  // of the parcel
  for (const Interval& places : parcel.places) {
    const Interval rows =
        pattern::intersection({part.first, part.first + part.rows}, {row, row + places.size()});
    if (!rows.empty()) {
      const std::int64_t first = places.begin + rows.begin - row;
      round->push_back({.from = parcel.owner,
                        .to = parcel.user,
                        .owner = parcel.owner,
                        .first = first,
                        .rows = rows.size(),
                        .from_row = first});
    }
    row += places.size();
  }
}

}  // namespace

void route_directly(const Demand& demand, Rounds* rounds) {
  pack_rows(demand, rounds);
  const std::vector<Parcel> parcels = parcels_of(demand, *rounds);
  if (parcels.empty()) return place(rounds);
  std::vector<Part> parts = RoundSearch(demand, *rounds, parcels).find();
  std::ranges::stable_sort(parts, {},
                           [](const Part& part) { return std::pair(part.round, part.parcel); });
  for (std::size_t i = 0; i < parts.size(); ++i) {
    Part part = parts[i];
    // Parts of a parcel that go in one round and follow each other are one.
    for (; i + 1 < parts.size() && parts[i + 1].round == part.round &&
           parts[i + 1].parcel == part.parcel && parts[i + 1].first == part.first + part.rows;
         ++i) {
      part.rows += parts[i + 1].rows;
    }
    if (rounds->rounds.size() <= part.round) rounds->rounds.resize(part.round + 1);
    add_messages(parcels[part.parcel], part, &rounds->rounds[part.round]);
  }
  place(rounds);
}

}  // namespace annulus::ring
