#ifndef ANNULUS_RING_SCHEDULE_H_
#define ANNULUS_RING_SCHEDULE_H_

// The work of every rank of a ring, as data that can be printed, checked (check_schedule.h), drawn
// and compared; rank_driver.h carries out that of one rank.
//
// A rank computes with its own keys first and then round by round (rounds.h) with the rows that
// arrived, all rows of a round in one launch; where the pattern is a sum, in one launch for each
// branch through which its rows see any of them. A rank with rows launches at least once, because
// its last launch writes their answer.
//
// Each rank has two streams. Ops of a stream run in the order of the list; `waits` are the edges
// between the two:
//
//   compute   own ------ C0 ------ C1 ------ C2 -- join      C0 waits for X0, which brought its
//   exchange  pack - X0 ----- X1 ------ X2                   rows; X2 waits for C0, which read the
//                                                            slot it fills

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "ring/needs.h"
#include "ring/rounds.h"

namespace annulus::ring {

constexpr int kNone = -1;
constexpr int kOwnKeys = -1;         // in place of a round
constexpr int kCallersTensors = -1;  // in place of a slot: the rank's own K and V

// A message as one of its sides sees it.
struct Transfer {
  int peer = 0;
  int owner = 0;           // of the rows, which are
  std::int64_t first = 0;  // its packed rows from this one on
  std::int64_t rows = 0;
  int slot = kOwnRows;   // where the rank has them, or gets them; kOwnRows: its packed rows
  std::int64_t row = 0;  // where they begin there

  friend bool operator==(const Transfer&, const Transfer&) = default;
};

struct Op {
  enum class Kind {
    kPack,      // exchange stream: the rank's own rows that others need, behind one another
    kExchange,  // exchange stream: all messages of a round; at most one op in a round
    kCompute,   // compute stream: a launch
    kJoin,      // compute stream: nothing but its waits
  };
  Kind kind = Kind::kCompute;
  int round = kOwnKeys;

  // kCompute uses the rows that arrived in the round and are in the slot, or the rank's own.
  int slot = kCallersTensors;
  int branch = 0;      // of a sum
  bool first = false;  // the rank's first launch starts from nothing,
  bool last = false;   // and its last one writes O; between them the state is carried

  // kExchange. The messages between two ranks are in the same order on both.
  std::vector<Transfer> sends = {};
  std::vector<Transfer> receives = {};

  // Indices of this rank's ops on its other stream that must have ended before this one starts.
  std::vector<int> waits = {};

  bool on_exchange_stream() const { return kind == Kind::kPack || kind == Kind::kExchange; }
  friend bool operator==(const Op&, const Op&) = default;
};

struct RankSchedule {
  // In the order of the calls: the pack; then for each round its exchange before the computes of
  // the round before it, because they are queued so, and a wait sees only what was queued before.
  std::vector<Op> ops;
  std::array<std::int64_t, 2> slot_rows = {0, 0};
  // Rows that it receives and does not see: those of closed gaps (needs.h), and those that it only
  // passes on.
  std::int64_t unseen_rows = 0;

  std::int64_t rows_sent() const;
  std::int64_t rows_received() const;
  int launches() const;
  // Null where the rank has no exchange in that round; else *index is its index among the ops.
  const Op* exchange_of(int round, int* index) const;
  friend bool operator==(const RankSchedule&, const RankSchedule&) = default;
};

// The schedules of all ranks, as checkers and pictures want them.
struct Schedule {
  int rounds = 0;
  std::vector<PackedRows> packed;   // [owner]
  std::vector<RankSchedule> ranks;  // [rank]

  int rank_count() const { return static_cast<int>(ranks.size()); }
  const std::vector<Op>& ops_of(int rank) const {
    return ranks[static_cast<std::size_t>(rank)].ops;
  }
  friend bool operator==(const Schedule&, const Schedule&) = default;
};

// The schedule of one rank; one without rows of Q launches nothing.
RankSchedule make_schedule(const Needs& needs, const Rounds& rounds, int rank, bool has_rows);

// "rank 2 step 1: compute with 4096 rows of rank 1; send 256 rows to rank 3", one line for each
// rank and step. In step s the rank exchanges round s and computes with what round s - 1 brought,
// in step 0 with its own keys.
std::vector<std::string> describe(const Schedule& schedule);
// The same of one rank, which packs so many rows of its own.
std::vector<std::string> describe(const RankSchedule& schedule, std::int64_t packed_rows, int rank,
                                  int rounds);

}  // namespace annulus::ring

#endif  // ANNULUS_RING_SCHEDULE_H_
