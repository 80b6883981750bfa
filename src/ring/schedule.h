#ifndef ANNULUS_RING_SCHEDULE_H_
#define ANNULUS_RING_SCHEDULE_H_

// The work of every rank of a ring, as data that can be printed, checked (check_schedule.h), drawn
// and compared; local_ring.h carries it out.
//
// In step s rank r holds the shard of rank (r - s) mod P. While it computes with that shard, it
// passes it on to rank r + 1 and receives the next one from rank r - 1 into its other buffer. A
// shard goes no further than to the last rank that needs it; a rank computes with a shard only
// where its rows see a key of it. A rank with rows computes at least once, because its last launch
// writes their answer. Where the pattern is a sum, it launches once for each branch through which
// its rows see the shard, one launch after another in the step in which it holds the shard.
//
// Each rank has two streams. Ops of a stream run in the order of the list; `waits` are the edges
// between the two:
//
//   compute   C0 ------- C1 ------- C2 -- join      C1 waits for X0, which brought its keys
//   exchange  pack - X0 ------ X1 --------          X1 waits for C0, which read the buffer it fills

#include <cstdint>
#include <string>
#include <vector>

#include "ring/needs.h"

namespace annulus::ring {

constexpr int kNone = -1;
constexpr int kCallersTensors = -1;  // in place of a buffer: the rank's own K and V

struct Op {
  enum class Kind {
    kPack,      // exchange stream: the rank's own K and V into buffer 0
    kExchange,  // exchange stream: sends one buffer, or receives into the other, or both; at most
                // one in a step
    kCompute,   // compute stream: a launch
    kJoin,      // compute stream: nothing but its waits
  };
  Kind kind = Kind::kCompute;
  int step = 0;

  // kCompute uses the keys of `owner`, which are in `buffer`; kPack writes those of `owner` to
  // `buffer`.
  int owner = kNone;
  int buffer = kCallersTensors;
  int branch = 0;      // kCompute: the branch of a sum
  bool first = false;  // the rank's first launch starts from nothing,
  bool last = false;   // and its last one writes O; between them the state is carried

  // kExchange
  int send_to = kNone;
  int send_owner = kNone;
  int send_buffer = 0;
  int receive_from = kNone;
  int receive_owner = kNone;
  int receive_buffer = 0;

  // Indices of this rank's ops on its other stream that must have ended before this one starts.
  std::vector<int> waits = {};

  bool on_exchange_stream() const { return kind == Kind::kPack || kind == Kind::kExchange; }
  friend bool operator==(const Op&, const Op&) = default;
};

struct Schedule {
  int ranks = 0;
  // [rank], in the order of the calls: packs, then step by step the exchange before the computes,
  // because LocalRing::run queues them so, and a wait sees only what was queued before it.
  std::vector<std::vector<Op>> ops;
  std::vector<std::int64_t> shard_bytes;  // [rank]: packed K and V of its shard

  const std::vector<Op>& of_rank(int rank) const { return ops[static_cast<std::size_t>(rank)]; }
  std::int64_t bytes_sent(int rank) const;
  std::int64_t bytes_received(int rank) const;
  int launches(int rank) const;
  // Bytes that buffer 0 or 1 of a rank must hold; 0 where it is not used.
  std::int64_t buffer_bytes(int rank, int buffer) const;
  friend bool operator==(const Schedule&, const Schedule&) = default;
};

// rows_q[rank] is its number of queries; a rank without any launches nothing.
Schedule make_schedule(const Needs& needs, const std::vector<std::int64_t>& rows_q,
                       const std::vector<std::int64_t>& shard_bytes);

// "rank 2 step 1: compute with keys of rank 1 from buffer 1", one line for each rank and step.
std::vector<std::string> describe(const Schedule& schedule);

}  // namespace annulus::ring

#endif  // ANNULUS_RING_SCHEDULE_H_
