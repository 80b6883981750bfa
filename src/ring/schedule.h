#ifndef ANNULUS_RING_SCHEDULE_H_
#define ANNULUS_RING_SCHEDULE_H_

// The work of every rank of a ring, as data that can be printed, checked (check_schedule.h), drawn
// and compared. rank_driver.h runs the schedule of one rank.
//
// A rank first computes with its own keys. Then it computes round by round (rounds.h) with the rows
// that arrived, all rows of a round in one launch. If the pattern is a sum, there is one launch for
// each branch through which the rank's rows see any of these keys. A rank that has rows launches at
// least once, because its last launch writes the output.
//
// Each rank has two streams. The ops of a stream run in the order of the list. `waits` are the
// edges between the two streams:
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
constexpr int kOwnKeys = -1;         // stands for the rank's own keys in place of a round
constexpr int kCallersTensors = -1;  // stands for the rank's own K and V in place of a slot

// A message, from the point of view of one of its sides.
struct Transfer {
  int peer = 0;
  int owner = 0;           // the owner of the rows
  std::int64_t first = 0;  // the first of them among the owner's packed rows
  std::int64_t rows = 0;
  int slot = kOwnRows;   // where the rank sends them from or stores them; kOwnRows: its packed rows
  std::int64_t row = 0;  // their first row in the slot

  friend bool operator==(const Transfer&, const Transfer&) = default;
};

struct Op {
  enum class Kind {
    kPack,      // exchange stream: packs the rank's own rows that others need
    kExchange,  // exchange stream: all messages of a round; at most one op for each round
    kCompute,   // compute stream: a launch
    kJoin,      // compute stream: does nothing but wait
  };
  Kind kind = Kind::kCompute;
  int round = kOwnKeys;

  // kCompute uses the rows that arrived in the round and are in the slot, or the rank's own keys.
  int slot = kCallersTensors;
  int branch = 0;      // the branch of the pattern's sum
  bool first = false;  // the rank's first launch, which starts without a state
  bool last = false;   // the rank's last launch, which writes O; other launches pass the state on

  // For kExchange. The messages between two ranks have the same order on both.
  std::vector<Transfer> sends = {};
  std::vector<Transfer> receives = {};

  // Indices of this rank's ops on the other stream that must have ended before this op starts.
  std::vector<int> waits = {};

  bool on_exchange_stream() const { return kind == Kind::kPack || kind == Kind::kExchange; }
  friend bool operator==(const Op&, const Op&) = default;
};

struct RankSchedule {
  // In the order of the calls: the pack, then for each round its exchange before the computations
  // of the round before it. They are queued in this order, because a wait takes effect only for
  // what was queued before it.
  std::vector<Op> ops;
  std::array<std::int64_t, 2> slot_rows = {0, 0};
  // The number of rows that the rank receives but does not see: rows in closed gaps (needs.h), and
  // rows that it only passes on.
  std::int64_t unseen_rows = 0;

  std::int64_t rows_sent() const;
  std::int64_t rows_received() const;
  int launches() const;
  // Null if the rank has no exchange in the round; else *index is the op's index.
  const Op* exchange_of(int round, int* index) const;
  friend bool operator==(const RankSchedule&, const RankSchedule&) = default;
};

// The schedules of all ranks, for checks and pictures.
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

// The schedule of one rank. A rank without rows of Q launches nothing.
RankSchedule make_schedule(const Needs& needs, const Rounds& rounds, int rank, bool has_rows);

// One line for each rank and step, such as "rank 2 step 1: compute with 4096 rows of rank 1; send
// 256 rows to rank 3". In step s the rank exchanges round s and computes with the rows that arrived
// in round s - 1. In step 0 it computes with its own keys.
std::vector<std::string> describe(const Schedule& schedule);
// The lines of one rank, which packs `packed_rows` rows of its own.
std::vector<std::string> describe(const RankSchedule& schedule, std::int64_t packed_rows, int rank,
                                  int rounds);

}  // namespace annulus::ring

#endif  // ANNULUS_RING_SCHEDULE_H_
