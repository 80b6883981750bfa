#ifndef ANNULUS_RING_RANK_DRIVER_H_
#define ANNULUS_RING_RANK_DRIVER_H_

// Runs the schedule of one rank, step by step. It refers to other ranks only by their numbers:
//
//   driver.begin(call);                                    // pack
//   for (int step = 0; step <= driver.rounds(); ++step) {
//     if (step < driver.rounds()) {
//       driver.exchange(call, step, transport);
//       ...                                                // until the exchange is queued
//       driver.exchanged(step);
//     }
//     driver.compute(call, step - 1);                      // first with its own keys, kOwnKeys
//   }
//   driver.end(call);
//
// Each step is a separate function, because the ranks of one process must be stepped together: a
// wait takes effect only for what was queued before it.

#include <cstdint>
#include <optional>
#include <vector>

#include "annulus/ring.h"
#include "attention/run/forward.h"
#include "device/stream.h"
#include "ring/pack.h"
#include "ring/plan.h"
#include "ring/transport.h"

namespace annulus::ring {

// The device that a rank runs on.
struct RankDevice {
  device::ContextPointer context;
  jit::KernelCache* kernels = nullptr;  // used only by constructors
  jit::Arch arch;
  bool check_operands = false;  // whether runs query the driver about the memory of the operands
};

class RankDriver {
 public:
  // Gets the kernels, which may compile them, uploads the lists, and creates a stream and events.
  // Takes the launches out of the plan. Equal lists are uploaded once.
  RankDriver(RankPlan plan, int rounds, const RankDevice& device);

  int rounds() const { return static_cast<int>(steps_.size()) - 1; }
  // The plan without its launches, which have moved into the driver.
  const RankPlan& plan() const { return plan_; }
  const device::ContextPointer& context() const { return context_; }
  // The device memory that the driver holds, in bytes: lists, positions, tables.
  std::int64_t device_bytes() const { return device_bytes_; }
  std::int64_t sent_bytes() const { return sent_bytes_; }  // the number of bytes sent in a run
  // The first launch, or null if there is none. The lookup of the launch has the source of its
  // kernel.
  const attention::Forward* first_launch() const {
    return launches_.empty() ? nullptr : &launches_.front();
  }

  // Throws Error{kInvalidArgument, kUnsupported} if the call cannot run. Queues nothing.
  void check(const RingCall& call) const;

  // These functions queue work and allocate nothing.
  void begin(const RingCall& call) const;
  void exchange(const RingCall& call, int round, Transport& transport) const;
  // Must be called after the exchange of the round is queued.
  void exchanged(int round) const;
  void compute(const RingCall& call, int round) const;
  void end(const RingCall& call) const;

  // The stream of the rank's exchanges. Null if the rank exchanges nothing.
  abi::CUstream exchange_stream() const { return exchange_.handle(); }

 private:
  // The ops of one step: the exchange of round s, and the computations with the rows that arrived
  // in round s - 1.
  struct Step {
    int exchange = kNone;
    std::vector<int> computes = {};  // one for each branch
    std::size_t launch = 0;          // the index in launches_ of the first of these computations
  };

  const Op& op(int index) const { return plan_.schedule.ops[static_cast<std::size_t>(index)]; }
  void add_ops();
  void add_launches(const RankDevice& device);
  abi::CUstream stream_of(const RingCall& call, const Op& op) const;
  void wait_for(const RingCall& call, const Op& op) const;
  void ended(abi::CUstream stream, int index) const;
  std::byte* place(const RingCall& call, const Transfer& transfer) const;
  void launch(const RingCall& call, int index, std::size_t launch) const;

  device::ContextPointer context_;
  RankPlan plan_;
  bool check_operands_ = false;
  std::optional<Packer> packer_;              // no value if no row is packed
  std::vector<attention::Forward> launches_;  // one for each compute op, in their order
  std::vector<Step> steps_;                   // [step]
  device::Stream exchange_;                   // empty if the rank exchanges nothing
  std::vector<device::Event> ended_;          // [op]: empty if no op waits for it
  device::Event start_;
  std::int64_t device_bytes_ = 0;
  std::int64_t sent_bytes_ = 0;
  // The parts of the exchange that is being queued. Memory for the largest exchange is reserved.
  mutable std::vector<MessagePart> sends_, receives_;
};

}  // namespace annulus::ring

#endif  // ANNULUS_RING_RANK_DRIVER_H_
