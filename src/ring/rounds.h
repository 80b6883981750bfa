#ifndef ANNULUS_RING_ROUNDS_H_
#define ANNULUS_RING_ROUNDS_H_

// The travel of rows of K and V between the ranks of a ring, as data.
//
// A parcel is the rows of one owner that another rank, its user, needs. A round is a set of
// messages that travel at once: each rank sends to and receives from any number of others. The rows
// that a rank receives in round t fill its slot t % 2, one after another in the order of their
// owners. A route determines the messages:
//
//   direct   from the owner to the user in one hop. A round takes several small parcels, and a
//            large parcel is cut at multiples of 128 rows, or of fewer if shards are short.
//   ring     from neighbour to neighbour, each parcel whichever way round is shorter. In round t
//            a rank passes on the rows that it received in round t - 1, from its other slot, if
//            a rank further along the way needs them.
//
// A rank holds its own packed rows and two slots. If it receives in more than one round, all three
// together have at most twice the rows of the largest shard. With very short shards they may have
// the few more rows that are needed to hold a row from either side in each slot.

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "annulus/ring.h"
#include "ring/needs.h"
#include "ring/parcels.h"

namespace annulus::ring {

constexpr int kOwnRows = -1;  // in place of a slot: the sender's own packed rows

// The packed rows [first, first + rows) of `owner`, sent from one rank to another.
struct Message {
  int from = 0;
  int to = 0;
  int owner = 0;
  int from_slot = kOwnRows;
  std::int64_t first = 0;
  std::int64_t rows = 0;
  std::int64_t from_row = 0;  // their first row in the sender's slot, or among its packed rows
  std::int64_t to_row = 0;    // their first row in the receiver's slot of the round

  friend bool operator==(const Message&, const Message&) = default;
};

struct Rounds {
  Route route = Route::kDirect;    // never kAuto
  std::string reason;              // the reason for this route, as a sentence
  std::vector<PackedRows> packed;  // [owner]
  // [round], sorted by receiver and then by place in the receiver's slot.
  std::vector<std::vector<Message>> rounds;
  std::int64_t rows_needed = 0;    // sum over ranks of the rows of other owners that the rank sees
  std::int64_t rows_sent = 0;      // sum over all messages
  std::int64_t rows_relayed = 0;   // received by ranks that do not need them
  std::int64_t rows_unneeded = 0;  // received because they close a gap (needs.h)
  std::int64_t messages = 0;
  // [rank][slot]: rows that the slot must hold.
  std::vector<std::array<std::int64_t, 2>> slot_rows;

  int ranks() const { return static_cast<int>(packed.size()); }
  // The rank's own packed rows and both slots.
  std::int64_t held_rows(int rank) const {
    const auto at = static_cast<std::size_t>(rank);
    return packed[at].count() + slot_rows[at][0] + slot_rows[at][1];
  }
  friend bool operator==(const Rounds&, const Rounds&) = default;
};

// The most rows that a rank may hold if it receives in more than one round.
std::int64_t max_held_rows(std::int64_t largest_shard, std::int64_t packed_rows);

// shard_rows[rank] is the number of keys that the rank owns. The same arguments give the same
// rounds. kAuto takes the route that sends fewer rows. If the two differ by at most 2 %, it takes
// the route with fewer rounds, then the route that holds fewer rows, and then `direct`.
Rounds make_rounds(const Needs& needs, const std::vector<std::int64_t>& shard_rows, Route route);

}  // namespace annulus::ring

#endif  // ANNULUS_RING_ROUNDS_H_
