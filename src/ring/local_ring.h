#ifndef ANNULUS_RING_LOCAL_RING_H_
#define ANNULUS_RING_LOCAL_RING_H_

// Carries out a planned ring whose ranks all live in this process, each on a device of its own or
// several on one. An exchange is a copy on the receiver's stream: it starts when both sides have
// reached it, and both sides wait for its end, as with a send and a receive of NCCL.

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "attention/run/forward.h"
#include "device/stream.h"
#include "ring/plan.h"

namespace annulus::ring {

// The device that a rank runs on.
struct RankDevice {
  device::ContextPointer context;
  jit::KernelCache* kernels = nullptr;  // used by the constructor alone
  jit::Arch arch;
  bool check_operands = false;  // runs ask the driver about their memory
};

class LocalRing {
 public:
  // Gets the kernels, which may compile them, uploads the lists, makes streams and events.
  // Requires: one device for each rank.
  LocalRing(PlannedRing plan, std::span<const RankDevice> devices);

  // The launches have moved into the ring, so RankPlan::launches is empty in here. Count tiles
  // before.
  const PlannedRing& plan() const { return plan_; }
  // The first launch of a rank, or null where it has none. Its lookup says where the kernel came
  // from.
  const attention::Forward* first_launch(int rank) const;

  // See RingPlan::run.
  void run(std::span<const RingCall> calls) const;

 private:
  struct Rank {
    device::ContextPointer context;
    std::vector<attention::Forward> launches;       // in the order of the compute ops
    std::shared_ptr<const jit::LoadedKernel> pack;  // null where nothing is packed
    device::Stream exchange;                        // empty where the rank exchanges nothing
    std::vector<device::Event> ended;               // [op]: empty where no op waits for it
    device::Event start, ready, received;
    bool check_operands = false;
    std::int64_t sent_bytes = 0;  // in a run
  };
  // The ops of one rank in one step; kNone where there is none.
  struct Step {
    int exchange = kNone;
    std::vector<int> computes = {};  // branch by branch
    int launch = kNone;              // index into Rank::launches of the first of them
  };

  Rank make_rank(int number, const RankDevice& own);
  void require_match(int rank, const Op& op) const;
  void queue(std::span<const RingCall> calls) const;
  void check(std::span<const RingCall> calls) const;
  void begin(const RingCall& call, int rank) const;
  void exchange(std::span<const RingCall> calls, std::size_t step) const;
  void compute(const RingCall& call, int rank, const Step& step) const;
  void compute(const RingCall& call, int rank, int index, int launch) const;
  void end(const RingCall& call, int rank) const;

  const Op& op(int rank, int index) const {
    return plan_.schedule.ops[static_cast<std::size_t>(rank)][static_cast<std::size_t>(index)];
  }
  abi::CUstream stream_of(const RingCall& call, int rank, const Op& op) const;
  void wait_for(const RingCall& call, int rank, const Op& op) const;
  void ended(const RingCall& call, int rank, int index) const;
  std::byte* buffer(const RingCall& call, int rank, int buffer) const;

  PlannedRing plan_;
  std::vector<Rank> ranks_;
  std::vector<std::vector<Step>> steps_;  // [step][rank]
  mutable std::atomic<bool> busy_{false};
};

}  // namespace annulus::ring

#endif  // ANNULUS_RING_LOCAL_RING_H_
