#ifndef ANNULUS_RING_H_
#define ANNULUS_RING_H_

// One attention problem computed by a ring of P ranks: each rank keeps its rows of Q and O, and
// rows of K and V travel to the ranks that see them, while the rank computes with the rows that
// arrived before ("Ring Attention with Blockwise Transformers", Liu, Zaharia and Abbeel, 2023).
//
//   ShardMap shards = make_shards(Sharding::kZigzag, P, problem.seq_q, problem.seq_k);
//   RingPlan ring = plan_ring(devices, problem, shards);    // all ranks in one process
//   ring.run(calls);                                        // one RingCall for each rank
//
//   RingRankPlan ring = plan_ring(device, communicator, problem, shards);  // one rank of P
//   ring.run(call);                                                        // on every rank
//
// Patterns see positions of the whole problem, so the result is the result of one device for every
// P and all shards. Rows travel in rounds. A rank launches one kernel for its own keys and one for
// the rows of each round (for a sum, one per branch), and none for rows that its queries do not
// see. The order of keys depends only on problem, shards, route and configuration, so equal rings
// give equal bits.
//
// The ranks of a RingPlan are in one process, on separate or shared devices. A RingRankPlan is one
// rank over a communicator (annulus/communicator.h).
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
  kContiguous = 1,  // rank r holds piece r of P
  kZigzag = 2,      // rank r holds pieces r and 2 P - 1 - r of 2 P, which balances causal work
};
ANNULUS_EXPORT const char* to_string(Sharding sharding);  // "contiguous", "zigzag"

// The way of rows of K and V from their rank to the ranks whose queries see them.
enum class Route : int {
  kAuto = 0,    // the route with fewer bytes to send, then fewer rounds, then less memory
  kDirect = 1,  // in one hop
  kRing = 2,    // from neighbour to neighbour in the shorter direction
};
ANNULUS_EXPORT const char* to_string(Route route);  // "auto", "direct", "ring"

// The rows of the whole problem that each rank holds, in the order of its tensors' rows. O and LSE
// have the rows of Q, and V has the rows of K. A rank may hold no rows.
struct ShardMap {
  std::vector<std::vector<Segment>> q;  // [P], starts in [0, Sq)
  std::vector<std::vector<Segment>> k;  // [P], starts in [0, Sk)

  int ranks() const { return static_cast<int>(q.size()); }
  friend bool operator==(const ShardMap&, const ShardMap&) = default;
};

// Cuts rows into pieces that are as even as possible with edges at multiples of `multiple`; 0 is
// the largest power of two up to 128 that leaves no piece empty. Throws Error{kInvalidArgument} for
// ranks outside [1, kMaxRanks] and negative lengths or multiples.
ANNULUS_EXPORT ShardMap make_shards(Sharding sharding, int ranks, std::int64_t seq_q,
                                    std::int64_t seq_k, std::int64_t multiple = 0);

// Throws Error{kInvalidArgument} if the map has no rank, more than kMaxRanks, or not every row of
// the problem exactly once; the message names the rank and the row. Throws Error{kUnsupported} for
// problems that rings do not compute: e4m3 operands, and states carried in or out.
ANNULUS_EXPORT void validate(const ShardMap& shards, const Problem& problem);

// The problem whose tuned result (annulus/tune.h) decides a ring's configuration: a launch with the
// largest numbers of rows of Q and of K of all ranks, which carries a state in and out if there are
// several ranks. tune() it on the device of rank 0, whose result all ranks use. Throws the errors
// of validate() for the problem and the shards.
ANNULUS_EXPORT Problem ring_step(const Problem& problem, const ShardMap& shards);

// Options of a ring's launches and the route of its rows.
struct RingOptions : PlanOptions {
  Route route = Route::kAuto;
};

// One rank of a ring. Problem, shards and options must be equal on all ranks.
struct RingRank {
  Device device;
  Problem problem;  // the whole problem; nothing is carried in or out
  ShardMap shards;
  RingOptions options;
};

// The arguments of one rank, whose tensors have the rows of its shard.
struct RingCall {
  void* stream = nullptr;  // a CUstream of the rank's device
  Operands operands;       // o and lse are complete when the stream has passed the run
  // RingPlan::workspace_bytes(rank) of device memory, 256-byte aligned. Each rank, and each run in
  // flight at the same time, needs its own.
  void* workspace = nullptr;
};

struct RingRankInfo {
  std::string device;
  std::int64_t rows_q = 0;
  std::int64_t rows_k = 0;
  int launches = 0;  // attention kernels; at most rounds + 1, for each branch of a sum
  std::int64_t full_tiles = 0;
  std::int64_t partial_tiles = 0;
  std::int64_t bytes_sent = 0;
  std::int64_t bytes_received = 0;
  std::int64_t workspace_bytes = 0;
  std::int64_t device_bytes = 0;  // memory that the plan holds: tile lists, positions, tables
  // The predicted time of its attention kernels and its range (PlanPrediction), without copies.
  double predicted_micros = 0;
  double min_micros = 0;
  double max_micros = 0;
};

struct RingInfo {
  std::string kernel;
  std::string config;
  // The source of a tuned configuration (PlanInfo::tuned): rank 0's result for ring_step().
  std::string tuned;
  std::vector<RingRankInfo> ranks;
  Route route = Route::kDirect;  // never kAuto
  std::string route_reason;      // a sentence: why this route
  int rounds = 0;
  // Numbers of all ranks together, in one run.
  std::int64_t messages = 0;
  std::int64_t bytes_sent = 0;
  std::int64_t bytes_needed = 0;      // each row once for each rank, except its owner, that sees it
  std::int64_t bytes_relayed = 0;     // bytes received only to pass them on
  std::int64_t bytes_plain_ring = 0;  // bytes sent if every shard went to every rank
  double plan_ms = 0;                 // time to decide
  double compile_ms = 0;              // time to find or compile the kernels and to upload the lists
  std::vector<std::string> schedule;  // one line for each rank and step
};

// A problem made ready for a ring of ranks in one process. Copies share it. Only one thread at a
// time may call run(): a second thread gets Error{kInvalidArgument}.
class ANNULUS_EXPORT RingPlan {
 public:
  struct Impl;
  explicit RingPlan(std::shared_ptr<const Impl> impl) : impl_(std::move(impl)) {}
  RingPlan(const RingPlan&) = default;
  RingPlan& operator=(const RingPlan&) = default;

  int ranks() const;
  const RingInfo& info() const;
  // The shapes of one rank's tensors: Sq and Sk are the rows of its shards.
  const Problem& rank_problem(int rank) const;

  // Bytes of scratch memory of a rank: the state of its rows, its rows of K and V that other ranks
  // need, and the rows that arrive in two rounds, together at most two shards of K and V. 0 if P is
  // 1 and the pattern is not a sum.
  std::size_t workspace_bytes(int rank) const;

  // Puts the work of all ranks on their streams and returns. It allocates nothing, takes no lock
  // and does not wait. Copies between ranks run on streams of the plan, which first wait for the
  // caller's streams; at the end the caller's streams wait for them. A run can be captured if all
  // streams are part of the capture. Throws Error{kInvalidArgument}, which names the rank, before
  // anything is launched, and Error{kDevice} if a driver refuses a call.
  void run(std::span<const RingCall> calls) const;

  // The schedule as a picture: a row for each rank, a column for each step.
  std::string picture_svg() const;

 private:
  std::shared_ptr<const Impl> impl_;
};

// Plans a ring whose ranks bring their own devices, problems, shards and options. Throws the errors
// of Device::plan; Error{kInvalidArgument} if ranks disagree, which names the rank and its values;
// Error{kUnsupported} for carried states, e4m3 (scales are not sent) and kv_splits above 1.
ANNULUS_EXPORT RingPlan plan_ring(std::span<const RingRank> ranks);

// Plans one problem on all ranks: rank r runs on devices[r], and a device may occur several times.
ANNULUS_EXPORT RingPlan plan_ring(std::span<const Device> devices, const Problem& problem,
                                  const ShardMap& shards, const RingOptions& options = {});

// One rank of a ring whose other ranks are planned by other threads or processes, on this machine
// or others. Copies share it. Only one thread at a time may call run().
class ANNULUS_EXPORT RingRankPlan {
 public:
  struct Impl;
  explicit RingRankPlan(std::shared_ptr<const Impl> impl) : impl_(std::move(impl)) {}
  RingRankPlan(const RingRankPlan&) = default;
  RingRankPlan& operator=(const RingRankPlan&) = default;

  int rank() const;
  int ranks() const;
  // RingInfo::ranks and the schedule have only this rank; totals are for all ranks.
  const RingInfo& info() const;
  const Problem& rank_problem() const;  // the shapes of its tensors
  std::size_t workspace_bytes() const;  // see RingPlan::workspace_bytes

  // Puts this rank's work on its streams and returns when NCCL has queued its messages. That may
  // take until the other ranks have called it too; it never waits for a device. All ranks call it
  // the same number of times. Allocates nothing and takes no lock. Returns the number of the run:
  // after the stream has passed the run, Communicator::state returns whether its outputs are good
  // or void. A run can be captured if the communicator is blocking. Throws Error{kInvalidArgument}
  // before anything is queued. Throws Error{kCommunication} if a rank misses the communicator's
  // deadline: the outputs of the run are void, and the communicator is abandoned.
  std::int64_t run(const RingCall& call) const;

 private:
  std::shared_ptr<const Impl> impl_;
};

// Plans this rank together with all other ranks of the communicator, which call it at the same time
// with the same problem, shards and options. The ranks compare their arguments, use rank 0's
// configuration, and wait for each other's compilations, within CommunicatorOptions::planning. The
// result has the bits of a RingPlan with the same shards, route and configuration. If rows travel
// and PlanOptions::max_multiprocessors is 0, the launches leave CommunicatorOptions::ctas
// multiprocessors to NCCL. Every rank throws the same error of plan_ring(), with the rank that
// failed or differs in the message, or Error{kCommunication} if a rank misses the deadline. Then
// the communicator is abandoned, and Communicator::blamed() has the rank if there is a rendezvous.
ANNULUS_EXPORT RingRankPlan plan_ring(const Device& device, const Communicator& communicator,
                                      const Problem& problem, const ShardMap& shards,
                                      const RingOptions& options = {});

}  // namespace annulus::inline v0

#endif  // ANNULUS_RING_H_
