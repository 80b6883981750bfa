#ifndef ANNULUS_RING_H_
#define ANNULUS_RING_H_

// One attention problem around a ring of P ranks: each rank keeps its rows of Q and O, and rows of
// K and V travel to the ranks that see them while those that came before are computed with ("Ring
// Attention with Blockwise Transformers", Liu, Zaharia and Abbeel, 2023).
//
//   ShardMap shards = make_shards(Sharding::kZigzag, P, problem.seq_q, problem.seq_k);
//   RingPlan ring = plan_ring(devices, problem, shards);    // one device for each rank
//   ring.run(calls);                                        // one RingCall for each rank
//
// Every pattern sees positions of the whole problem, so the answer is that of one device whatever P
// and the shards are. Rows travel in rounds: a rank launches one kernel for its own keys and one
// for what each round brings it (with a sum, one for each branch), and none for rows that its own
// do not see. The order in which keys are taken depends only on problem, shards, route and
// configuration, so the same ring gives the same bits.
//
// The ranks of a RingPlan live in one process, each on a device of its own or several on one
// device. A RingRankPlan is one rank of a ring over a communicator (annulus/communicator.h):
//
//   RingRankPlan ring = plan_ring(device, communicator, problem, shards);   // on every rank
//   ring.run(call);

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "annulus/communicator.h"
#include "annulus/device.h"

namespace annulus::inline v0 {

constexpr int kMaxRanks = 4096;

enum class Sharding : int {
  kContiguous = 1,  // rank r holds the r-th of P pieces
  kZigzag = 2,      // of 2 P pieces rank r holds the r-th and the r-th from the end, which balances
                    // causal work
};
ANNULUS_EXPORT const char* to_string(Sharding sharding);  // "contiguous", "zigzag"

// How rows of K and V get from the rank that owns them to the ranks whose queries see them.
enum class Route : int {
  kAuto = 0,    // the one that sends fewer bytes, in fewer rounds, with fewer bytes held
  kDirect = 1,  // in one hop
  kRing = 2,    // from neighbour to neighbour, whichever way round is shorter
};
ANNULUS_EXPORT const char* to_string(Route route);  // "auto", "direct", "ring"

// Which rows of the whole problem each rank holds, in the order of its tensors' rows. Rows of Q are
// those of O and LSE; rows of K are those of V. A rank may hold none.
struct ShardMap {
  std::vector<std::vector<Segment>> q;  // [P], starts in [0, Sq)
  std::vector<std::vector<Segment>> k;  // [P], starts in [0, Sk)

  int ranks() const { return static_cast<int>(q.size()); }
  friend bool operator==(const ShardMap&, const ShardMap&) = default;
};

// Cuts rows into pieces as even as edges at multiples of `multiple` rows allow; 0 stands for the
// largest power of two up to 128 that leaves no piece empty. Throws Error{kInvalidArgument} for
// ranks outside [1, kMaxRanks], negative lengths and multiples.
ANNULUS_EXPORT ShardMap make_shards(Sharding sharding, int ranks, std::int64_t seq_q,
                                    std::int64_t seq_k, std::int64_t multiple = 0);

// Throws Error{kInvalidArgument} where the map has no rank or more than kMaxRanks, or does not
// hold every row of the problem exactly once; the message names the rank and the row. Throws
// Error{kUnsupported} for a problem that no ring computes: e4m3 operands, a state that is carried
// in or out.
ANNULUS_EXPORT void validate(const ShardMap& shards, const Problem& problem);

// The problem by whose tuned result (annulus/tune.h) a ring's configuration is chosen: a launch
// with the most rows of Q and of K that any rank has, which takes a state and leaves one where
// there are several ranks, as most launches of a ring do. tune() it on the device of rank 0, whose
// result all ranks follow. Throws what validate() throws for the problem and the shards.
ANNULUS_EXPORT Problem ring_step(const Problem& problem, const ShardMap& shards);

// Options of the launches that a ring is made of, and how their rows travel.
struct RingOptions : PlanOptions {
  Route route = Route::kAuto;
};

// The request of one rank. Problem, shards and options must be the same on all ranks.
struct RingRank {
  Device device;
  Problem problem;  // the whole problem; nothing is carried in or out
  ShardMap shards;
  RingOptions options;
};

// The tensors of one rank, with the rows of its shard.
struct RingCall {
  void* stream = nullptr;  // a CUstream of the rank's device
  Operands operands;       // o and lse are complete when the stream has passed the run
  // RingPlan::workspace_bytes(rank) of device memory, 256-byte aligned. Each rank needs its own,
  // and so does each run in flight at the same time.
  void* workspace = nullptr;
};

struct RingRankInfo {
  std::string device;
  std::int64_t rows_q = 0;
  std::int64_t rows_k = 0;
  int launches = 0;  // of attention kernels; at most one more than rounds, for each branch of a sum
  std::int64_t full_tiles = 0;
  std::int64_t partial_tiles = 0;
  std::int64_t bytes_sent = 0;
  std::int64_t bytes_received = 0;
  std::int64_t workspace_bytes = 0;
  std::int64_t device_bytes = 0;  // memory that the plan holds: tile lists, positions, tables
  // The predicted time of its attention kernels, one after another, as PlanPrediction has it for a
  // plan of one device. Copies between ranks are not counted.
  double predicted_micros = 0;
  double least_micros = 0;  // its range, likewise
  double most_micros = 0;
};

struct RingInfo {
  std::string kernel;
  std::string config;
  // As PlanInfo::tuned, from rank 0's results for a launch of the largest shards.
  std::string tuned;
  std::vector<RingRankInfo> ranks;
  Route route = Route::kDirect;  // never kAuto
  std::string route_reason;      // a sentence: why this route
  int rounds = 0;
  std::int64_t messages = 0;  // of all ranks together, in one run, as all that follow
  std::int64_t bytes_sent = 0;
  std::int64_t bytes_needed = 0;      // each row once for each rank but its owner that sees it
  std::int64_t bytes_relayed = 0;     // received by ranks that only pass them on
  std::int64_t bytes_plain_ring = 0;  // bytes sent if every shard went to every rank
  double plan_ms = 0;                 // time to decide
  double compile_ms = 0;              // time to get the kernels and upload the lists
  std::vector<std::string> schedule;  // one line for each rank and step
};

// A problem made ready for a ring. Copies share. Only one thread at a time may put a run on the
// streams: a call that meets another one in a different thread throws Error{kInvalidArgument}.
class ANNULUS_EXPORT RingPlan {
 public:
  struct Impl;
  explicit RingPlan(std::shared_ptr<const Impl> impl) : impl_(std::move(impl)) {}
  // No move: a plan that was moved from would be none. A copy is a pointer.
  RingPlan(const RingPlan&) = default;
  RingPlan& operator=(const RingPlan&) = default;

  int ranks() const;
  const RingInfo& info() const;
  // The shapes of one rank's tensors: Sq and Sk are the rows of its shards.
  const Problem& rank_problem(int rank) const;

  // Scratch memory of a rank: the state of its rows, those of its rows of K and V that others need,
  // and what two rounds bring, these three together no more than two shards of K and V; 0 where P
  // is 1 and the pattern is no sum.
  std::size_t workspace_bytes(int rank) const;

  // Puts the work of all ranks on their streams and returns. It allocates nothing, takes no lock
  // and does not wait. Copies between ranks run on streams of the plan, which first wait for the
  // work on the caller's streams; the caller's streams wait for them at the end. A run can be
  // captured where all streams are part of the capture. Throws Error{kInvalidArgument} before
  // anything is launched, naming the rank, and Error{kDevice} where a driver refuses.
  void run(std::span<const RingCall> calls) const;

  // The schedule as a picture: a row for each rank, a column for each step.
  std::string picture_svg() const;

 private:
  std::shared_ptr<const Impl> impl_;
};

// Decides, compiles and uploads for all ranks. Throws what Device::plan throws;
// Error{kInvalidArgument} where ranks disagree, naming the rank and what it brought;
// Error{kUnsupported} for a carried state, for e4m3 operands (no scales are sent) and for kv_splits
// above 1.
ANNULUS_EXPORT RingPlan plan_ring(std::span<const RingRank> ranks);

// Plans for one problem on all ranks: rank r runs on devices[r], and a device may occur several
// times.
ANNULUS_EXPORT RingPlan plan_ring(std::span<const Device> devices, const Problem& problem,
                                  const ShardMap& shards, const RingOptions& options = {});

// One rank of a ring whose other ranks are planned elsewhere: by other threads, or by other
// processes on this machine or others. Copies share. One thread at a time may put a run on the
// streams.
class ANNULUS_EXPORT RingRankPlan {
 public:
  struct Impl;
  explicit RingRankPlan(std::shared_ptr<const Impl> impl) : impl_(std::move(impl)) {}
  // No move: a plan that was moved from would be none. A copy is a pointer.
  RingRankPlan(const RingRankPlan&) = default;
  RingRankPlan& operator=(const RingRankPlan&) = default;

  int rank() const;
  int ranks() const;
  // RingInfo::ranks and the schedule have this rank alone; totals are those of all ranks.
  const RingInfo& info() const;
  const Problem& rank_problem() const;  // the shapes of its tensors
  std::size_t workspace_bytes() const;  // as RingPlan::workspace_bytes

  // Puts this rank's work on its streams and returns when NCCL has queued its messages, which may
  // take until the other ranks have called too, but never waits for a device. All ranks call it,
  // as often as each other. Allocates nothing and takes no lock. Returns the number of the run,
  // for which Communicator::state says, once the stream has passed it, whether its outputs are good
  // or void. A run can be captured where the communicator is blocking. Throws
  // Error{kInvalidArgument} before anything is queued, and Error{kCommunication} where a rank does
  // not come within the communicator's deadline: the outputs of that run are void, and the
  // communicator is given up.
  std::int64_t run(const RingCall& call) const;

 private:
  std::shared_ptr<const Impl> impl_;
};

// Plans this rank, together with all others, who call it at the same time with the same problem,
// shards and options: the communicator's ranks are those of the shards. They compare what they
// bring, run rank 0's configuration, and meet again when all have compiled, within
// CommunicatorOptions::planning. An answer has the bits of a RingPlan of the same shards, route and
// configuration. Where rows travel and PlanOptions::max_multiprocessors is 0, the launches leave
// CommunicatorOptions::ctas multiprocessors to NCCL. Throws as plan_ring() of all ranks, the same
// code on every rank, with the rank that failed or differs in the message, and
// Error{kCommunication} if a rank does not come. The communicator is given up then, and if its
// ranks have met, Communicator::blamed() has the rank.
ANNULUS_EXPORT RingRankPlan plan_ring(const Device& device, const Communicator& communicator,
                                      const Problem& problem, const ShardMap& shards,
                                      const RingOptions& options = {});

}  // namespace annulus::inline v0

#endif  // ANNULUS_RING_H_
