#ifndef ANNULUS_RING_ROUNDS_H_
#define ANNULUS_RING_ROUNDS_H_

// How rows of K and V travel between the ranks of a ring, as data.
//
// A parcel is the rows of one owner that another rank, its user, needs. A round is what goes over
// at once: each rank sends to and receives from any number of others. What a rank receives in round
// t fills its slot t % 2, rows of several owners behind one another in the order of the owners. A
// route says which messages that makes:
//
//   direct   from the owner to the user in one hop. A round takes several small parcels, and a
//            large parcel is cut, at multiples of 128 of its rows where shards are not shorter.
//   ring     from neighbour to neighbour, each parcel whichever way round is shorter. In round t
//            a rank passes on what it got in round t - 1, as far as somebody further on needs it,
//            from its other slot.
//
// A rank holds its own packed rows and two slots. Where it takes more than one round, all three
// together are no more than two of the largest shards, or the few rows more that the shortest
// shards need for a row from either side in each slot.

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "annulus/ring.h"
#include "ring/needs.h"
#include "ring/parcels.h"

namespace annulus::ring {

constexpr int kOwnRows = -1;  // in place of a slot: the sender's own packed rows

// Packed rows [first, first + rows) of `owner` on their way from one rank to another.
struct Message {
  int from = 0;
  int to = 0;
  int owner = 0;
  int from_slot = kOwnRows;
  std::int64_t first = 0;
  std::int64_t rows = 0;
  std::int64_t from_row = 0;  // where they begin in the sender's slot, or among its packed rows
  std::int64_t to_row = 0;    // where they begin in the receiver's slot of the round

  friend bool operator==(const Message&, const Message&) = default;
};

struct Rounds {
  Route route = Route::kDirect;    // never kAuto
  std::string reason;              // a sentence: why this route
  std::vector<PackedRows> packed;  // [owner]
  // [round], sorted by receiver and then by where they go in its slot.
  std::vector<std::vector<Message>> rounds;
  std::int64_t rows_needed = 0;    // each row once for each rank but its owner that sees it
  std::int64_t rows_sent = 0;      // of all messages
  std::int64_t rows_relayed = 0;   // received by ranks that do not need them
  std::int64_t rows_unneeded = 0;  // received because they close a gap (needs.h)
  std::int64_t messages = 0;
  // [rank][slot]: rows that the slot must hold.
  std::vector<std::array<std::int64_t, 2>> slot_rows;

  int ranks() const { return static_cast<int>(packed.size()); }
  // Own packed rows and both slots.
  std::int64_t held_rows(int rank) const {
    const auto at = static_cast<std::size_t>(rank);
    return packed[at].count() + slot_rows[at][0] + slot_rows[at][1];
  }
  friend bool operator==(const Rounds&, const Rounds&) = default;
};

// The most rows that a rank may hold where it receives in more than one round.
std::int64_t most_held_rows(std::int64_t largest_shard, std::int64_t packed_rows);

// shard_rows[rank] is the number of keys that it owns. The same arguments give the same rounds.
// kAuto takes the route that sends fewer rows; of two that send within 2 % of the same the one of
// fewer rounds; of these the one that holds fewer rows; and `direct` where that is the same too.
Rounds make_rounds(const Needs& needs, const std::vector<std::int64_t>& shard_rows, Route route);

}  // namespace annulus::ring

#endif  // ANNULUS_RING_ROUNDS_H_
