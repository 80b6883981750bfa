// The direct route: rows travel from their owner to their user in one hop.
//
// The assignment of messages to rounds is a colouring of the edges owner -> user. A round is a
// colour. In one round a rank may receive as many edges as fit in a slot, and it should send about
// an equal part of all that it sends. One order takes the edges by the distance from owner to user,
// so that if all ranks need alike, each rank sends and receives the same in every round. The other
// order takes the largest edges first. A first-fit assignment in one of these orders is tried with
// few rounds and small sends in each round first, then with larger values.
#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <limits>
#include <numeric>
#include <utility>

#include "base/math.h"
#include "base/work.h"
#include "ring/free_rounds.h"
#include "ring/routes.h"

namespace annulus::ring {
namespace {

using pattern::Interval;
using pattern::IntervalSet;

constexpr std::int64_t kNoBound = std::numeric_limits<std::int64_t>::max();

// The rows that a user needs from an owner. A ring may have up to ranks * ranks parcels.
struct Parcel {
  int owner = 0;
  int user = 0;
  std::int64_t rows = 0;
};

// Rows of a parcel that travel in one round. The parts of a parcel are adjacent, in the order of
// the parcel's rows.
struct Part {
  std::uint32_t parcel = 0;
  std::uint32_t round = 0;
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

// The order of all parcels: by the distance from owner to user, upwards around the ring, then by
// user. Consecutive parcels use adjacent numbers of FreeRounds.
class ParcelOrder {
 public:
  explicit ParcelOrder(const Demand& demand) : demand_(demand) {
    first_.assign(static_cast<std::size_t>(demand.ranks()) + 1, 0);
    each_need([&](std::size_t distance, int, const Need&) { ++first_[distance + 1]; });
    for (std::size_t i = 1; i < first_.size(); ++i) first_[i] += first_[i - 1];
  }

  std::size_t size() const { return first_.back(); }
  // Calls f(index in the order, user, need) by ascending user, then by ascending owner.
  template <typename F>
  void each(const F& f) const {
    std::vector<std::uint32_t> next = first_;
    each_need(
        [&](std::size_t distance, int user, const Need& need) { f(next[distance]++, user, need); });
  }

 private:
  template <typename F>
  void each_need(const F& f) const {
    const int ranks = demand_.ranks();
    for (int user = 0; user < ranks; ++user) {
      base::charge(4 * std::ssize(demand_.needs.of(user)));
      for (const Need& need : demand_.needs.of(user)) {
        const int distance = (user - need.owner + ranks) % ranks;
        if (distance > 0) f(static_cast<std::size_t>(distance), user, need);
      }
    }
  }

  const Demand& demand_;
  std::vector<std::uint32_t> first_;  // [distance]: the index of the first parcel
};

std::vector<Parcel> parcels_of(const ParcelOrder& order) {
  std::vector<Parcel> parcels(order.size());
  order.each([&](std::uint32_t index, int user, const Need& need) {
    parcels[index] = {need.owner, user, pattern::size(need.rows)};
  });
  return parcels;
}

// One attempt to assign all parcels to a given number of rounds.
class Filling {
 public:
  struct Bounds {
    std::size_t rounds = 1;
    // [round % 2][rank]: rows in a round
    std::array<std::vector<std::int64_t>, 2> receive, send;
    std::int64_t grain = 1;
    bool halves = false;  // parcels are cut into halves or not at all
  };

  Filling(const std::vector<Parcel>& parcels, const Bounds& bounds)
      : parcels_(parcels),
        bounds_(bounds),
        receiving_(bounds.rounds, bounds.receive),
        sending_(bounds.rounds, bounds.send) {}

  // The size of the first half of `rows` rows, if a slot holds at most `most` rows.
  static std::int64_t first_half(std::int64_t rows, std::int64_t most, std::int64_t grain) {
    const std::int64_t first = rows - base::round_down(rows / 2, grain);
    return first <= most ? first : base::round_down(most, grain);
  }

  // Returns the parts in the order in which they were assigned, or no parts if they do not fit.
  // Requires: there are parcels.
  std::vector<Part> fill(const std::vector<std::uint32_t>& order) {
    parts_.reserve(parcels_.size());
    for (const std::uint32_t parcel : order) {
      base::charge(2);
      if (!(bounds_.halves ? put_in_halves(parcel) : put_in_pieces(parcel))) return {};
    }
    return std::move(parts_);
  }

 private:
  std::int64_t capacity(int user, std::size_t round) const {
    return bounds_.receive[round % 2][static_cast<std::size_t>(user)];
  }
  // The number of further rows of the parcel that the round can take.
  std::int64_t room(const Parcel& parcel, std::size_t round) const {
    return std::min(receiving_.room(parcel.user, round), sending_.room(parcel.owner, round));
  }

  // The first round that has room for `rows` rows of the parcel and for which accepts() is true.
  template <typename Accepts>
  std::size_t first_round(const Parcel& parcel, std::int64_t rows, const Accepts& accepts) {
    if (rows > capacity(parcel.user, 0)) return bounds_.rounds;
    return first_common(
        receiving_.at_least(parcel.user, rows), sending_.at_least(parcel.owner, rows),
        bounds_.rounds,
        [&](std::size_t round) { return room(parcel, round) >= rows && accepts(round); });
  }
  std::size_t first_round(const Parcel& parcel, std::int64_t rows) {
    return first_round(parcel, rows, [](std::size_t) { return true; });
  }

  bool put_in_pieces(std::uint32_t index) {
    const Parcel& parcel = parcels_[index];
    for (std::int64_t first = 0; first < parcel.rows;) {
      const std::int64_t left = parcel.rows - first;
      const std::size_t round = round_of_piece(parcel, left);
      if (round == bounds_.rounds) return false;
      const std::int64_t space = room(parcel, round);
      const std::int64_t rows = space >= left ? left : base::round_down(space, bounds_.grain);
      add(index, round, rows);
      first += rows;
    }
    return true;
  }

  // The first round that can take `rows` rows of the parcel. If there is none, the first round in
  // which the user receives nothing else. If there is none, the first round that can take any row.
  std::size_t round_of_piece(const Parcel& parcel, std::int64_t rows) {
    std::size_t round = first_round(parcel, rows);
    if (round < bounds_.rounds) return round;
    round = first_round(parcel, capacity(parcel.user, 1), [&](std::size_t at) {
      return room(parcel, at) == capacity(parcel.user, at);
    });
    return round < bounds_.rounds ? round : first_round(parcel, bounds_.grain);
  }

  bool put_in_halves(std::uint32_t index) {
    const Parcel& parcel = parcels_[index];
    if (put_whole(index, parcel.rows)) return true;
    const std::int64_t first = first_half(parcel.rows, capacity(parcel.user, 0), bounds_.grain);
    return put_whole(index, first) && put_whole(index, parcel.rows - first);
  }
  bool put_whole(std::uint32_t index, std::int64_t rows) {
    if (rows == 0) return false;
    const std::size_t round = first_round(parcels_[index], rows);
    if (round == bounds_.rounds) return false;
    add(index, round, rows);
    return true;
  }

  void add(std::uint32_t index, std::size_t round, std::int64_t rows) {
    parts_.push_back({index, static_cast<std::uint32_t>(round), rows});
    receiving_.take(parcels_[index].user, round, rows);
    sending_.take(parcels_[index].owner, round, rows);
  }

  const std::vector<Parcel>& parcels_;
  const Bounds& bounds_;
  FreeRounds receiving_, sending_;
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
  }

  std::vector<Part> find() {
    if (fits_one_round()) return in_one_round();
    set_slots();
    by_distance_.resize(parcels_.size());
    std::iota(by_distance_.begin(), by_distance_.end(), std::uint32_t{0});
    const std::size_t fewest = fewest_rounds();
    std::vector<Part> parts = find(fewest);
    if (!is_crowded(parts)) return parts;
    std::vector<Part> halves = find_halves(fewest, bounds_.rounds + 1 + bounds_.rounds / 50);
    return halves.empty() || is_crowded(halves) ? parts : halves;
  }

 private:
  std::int64_t budget(std::size_t rank) const {
    const std::int64_t packed = rounds_.packed[rank].count();
    return max_held_rows(demand_.largest, packed) - packed;
  }

  // Finds parts with as few rounds as possible, and with these rounds the smallest sends in each
  // round.
  std::vector<Part> find(std::size_t fewest) {
    for (std::size_t rounds = fewest;; ++rounds) {
      std::vector<Part> parts = fill(rounds, kNoBound);
      if (!parts.empty()) return send_less(rounds, std::move(parts));
    }
  }

  // Does the same with parcels cut into halves. Returns no parts if no number of rounds up to
  // `most` suffices. Usually, if a number suffices, every larger number does too. So ever larger
  // numbers are tried until one suffices, and then some smaller ones. Trying every number would
  // take a time in O(ranks^3).
  std::vector<Part> find_halves(std::size_t fewest, std::size_t most) {
    bounds_.halves = true;
    fewest = std::max(fewest, fewest_rounds_of_halves());
    std::vector<Part> parts;
    std::size_t enough = fewest;
    for (std::size_t step = 1; parts.empty(); step *= 2) {
      if (fewest > most) return {};
      enough = std::min(fewest + step - 1, most);
      parts = fill(enough, kNoBound);
      if (parts.empty()) fewest = enough + 1;
    }
    while (fewest < enough) {
      const std::size_t middle = fewest + (enough - fewest) / 2;
      std::vector<Part> fewer = fill(middle, kNoBound);
      if (fewer.empty()) {
        fewest = middle + 1;
      } else {
        enough = middle;
        parts = std::move(fewer);
      }
    }
    return send_less(enough, std::move(parts));
  }

  // Parts in `rounds` rounds in which no rank sends much more in one round than its share. Returns
  // the given parts if none are found.
  std::vector<Part> send_less(std::size_t rounds, std::vector<Part> parts) {
    // The most that a rank sends in a round, in quarters of its share.
    for (const std::int64_t quarters : {4, 5, 6, 8, 12, 16}) {
      std::vector<Part> bounded = fill(rounds, quarters);
      if (!bounded.empty()) return bounded;
    }
    return parts;
  }

  // Whether some rank receives parts of more than two parcels in a round.
  bool is_crowded(const std::vector<Part>& parts) const {
    base::charge(std::ssize(parts));
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
    for (std::uint32_t i = 0; i < parcels_.size(); ++i) {
      parts.push_back({i, 0, parcels_[i].rows});
    }
    return parts;
  }

  // Divides the rows that a rank may hold between its slots. Slot 0 gets the remainder.
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

  // A round cannot take two halves that are each larger than half a slot.
  std::size_t fewest_rounds_of_halves() const {
    // [user]: the number of its large parcels
    std::vector<std::size_t> large(to_receive_.size(), 0);
    base::charge(std::ssize(parcels_));
    for (const Parcel& parcel : parcels_) {
      const auto user = static_cast<std::size_t>(parcel.user);
      const std::int64_t slot = bounds_.receive[0][user];
      if (parcel.rows <= slot) continue;
      const std::int64_t first = Filling::first_half(parcel.rows, slot, bounds_.grain);
      for (const std::int64_t rows : {first, parcel.rows - first}) {
        if (2 * rows > slot) ++large[user];
      }
    }
    return std::ranges::max(large);
  }

  // Fills rounds in which a rank sends at most `quarters` quarters of its share.
  std::vector<Part> fill(std::size_t rounds, std::int64_t quarters) {
    bounds_.rounds = rounds;
    std::vector<std::int64_t> send;
    for (std::size_t rank = 0; rank < to_send_.size(); ++rank) {
      if (quarters == kNoBound) {
        send.push_back(kNoBound);
        continue;
      }
      const std::int64_t share =
          base::ceil_div(to_send_[rank], static_cast<std::int64_t>(bounds_.rounds));
      // At least the largest message, which fills a slot.
      send.push_back(std::max(base::round_up(share * quarters / 4, bounds_.grain),
                              std::ranges::max(bounds_.receive[0])));
    }
    bounds_.send = {send, send};
    std::vector<Part> parts = Filling(parcels_, bounds_).fill(by_distance_);
    return parts.empty() ? Filling(parcels_, bounds_).fill(by_size()) : parts;
  }

  const std::vector<std::uint32_t>& by_size() {
    if (by_size_.empty()) {
      base::charge(8 * std::ssize(parcels_));
      by_size_ = by_distance_;
      std::ranges::stable_sort(by_size_, std::greater<>(),
                               [&](std::uint32_t i) { return parcels_[i].rows; });
    }
    return by_size_;
  }

  const Demand& demand_;
  const Rounds& rounds_;
  const std::vector<Parcel>& parcels_;
  std::vector<std::int64_t> to_receive_, to_send_;    // [rank]: the total number of rows
  std::vector<std::uint32_t> by_distance_, by_size_;  // indices of parcels
  Filling::Bounds bounds_;
};

// The index of the first part of each parcel.
std::vector<std::size_t> starts_of(const std::vector<Part>& parts, std::size_t parcels) {
  std::vector<std::size_t> starts(parcels);
  for (std::size_t i = parts.size(); i-- > 0;) starts[parts[i].parcel] = i;
  return starts;
}

// Adds the messages of `part` of a parcel: one for each interval of `all_places` that the part
// touches. `all_places` are the places of the parcel's rows among the packed rows.
void add_messages(const Parcel& parcel, const IntervalSet& all_places, const Interval& part,
                  std::vector<Message>* round) {
  base::charge(4 * std::ssize(all_places));
  std::int64_t row = 0;  // the number of the row within the parcel
  for (const Interval& places : all_places) {
    const Interval rows = pattern::intersection(part, {row, row + places.size()});
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

// Creates the rounds, with reserved memory for the messages of all parts.
void reserve_rounds(const std::vector<Part>& parts, Rounds* rounds) {
  std::vector<std::size_t> counts;  // [round]: the number of parts
  for (const Part& part : parts) {
    if (counts.size() <= part.round) counts.resize(part.round + std::size_t{1});
    ++counts[part.round];
  }
  rounds->rounds.resize(counts.size());
  for (std::size_t t = 0; t < counts.size(); ++t) rounds->rounds[t].reserve(counts[t]);
}

}  // namespace

void route_directly(const Demand& demand, Rounds* rounds) {
  pack_rows(demand, rounds);
  const ParcelOrder order(demand);
  if (order.size() == 0) return place(rounds);
  const std::vector<Parcel> parcels = parcels_of(order);
  const std::vector<Part> parts = RoundSearch(demand, *rounds, parcels).find();
  const std::vector<std::size_t> starts = starts_of(parts, parcels.size());
  reserve_rounds(parts, rounds);
  order.each([&](std::uint32_t index, int, const Need& need) {
    const Parcel& parcel = parcels[index];
    const IntervalSet places =
        rounds->packed[static_cast<std::size_t>(need.owner)].places_of(need.rows);
    Interval rows;
    for (std::size_t i = starts[index]; i < parts.size() && parts[i].parcel == index; ++i) {
      rows.end += parts[i].rows;
      // Consecutive parts in the same round are merged.
      const bool goes_on = i + 1 < parts.size() && parts[i + 1].parcel == index &&
                           parts[i + 1].round == parts[i].round;
      if (goes_on) continue;
      add_messages(parcel, places, rows, &rounds->rounds[parts[i].round]);
      rows.begin = rows.end;
    }
  });
  place(rounds);
}

}  // namespace annulus::ring
