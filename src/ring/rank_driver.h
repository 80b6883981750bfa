#ifndef ANNULUS_RING_RANK_DRIVER_H_
#define ANNULUS_RING_RANK_DRIVER_H_

// Carries out the schedule of one rank, step by step, and knows no other rank but by its number:
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
// Steps are functions of their own because ranks of one process have to be stepped together: a wait
// sees only what was queued before it.

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
  jit::KernelCache* kernels = nullptr;  // used by constructors alone
  jit::Arch arch;
  bool check_operands = false;  // runs ask the driver about their memory
};

class RankDriver {
 public:
  // Gets the kernels, which may compile them, uploads the lists, makes a stream and events. Takes
  // the launches out of the plan. Equal lists are on the device once.
  RankDriver(RankPlan plan, int rounds, const RankDevice& device);

  int rounds() const { return static_cast<int>(steps_.size()) - 1; }
  // Without its launches, which have moved into the driver.
  const RankPlan& plan() const { return plan_; }
  const device::ContextPointer& context() const { return context_; }
  // Memory that the driver holds on the device: lists, positions, tables.
  std::int64_t device_bytes() const { return device_bytes_; }
  std::int64_t sent_bytes() const { return sent_bytes_; }  // in a run
  // The first launch, or null where it has none. Its lookup says where the kernel came from.
  const attention::Forward* first_launch() const {
    return launches_.empty() ? nullptr : &launches_.front();
  }

  // Throws Error{kInvalidArgument, kUnsupported} where the call cannot run; queues nothing.
  void check(const RingCall& call) const;

  // All of these queue work and allocate nothing.
  void begin(const RingCall& call) const;
  void exchange(const RingCall& call, int round, Transport& transport) const;
  // To be called when the exchange of the round is queued.
  void exchanged(int round) const;
  void compute(const RingCall& call, int round) const;
  void end(const RingCall& call) const;

  // The stream of the rank's exchanges; null where it has none.
  abi::CUstream exchange_stream() const { return exchange_.handle(); }

 private:
  // The ops of one step: exchange round s, compute with what round s - 1 brought.
  struct Step {
    int exchange = kNone;
    std::vector<int> computes = {};  // branch by branch
    std::size_t launch = 0;          // index into launches_ of the first of them
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
  std::optional<Packer> packer_;              // nothing where no row is packed
  std::vector<attention::Forward> launches_;  // in the order of the compute ops
  std::vector<Step> steps_;                   // [step]
  device::Stream exchange_;                   // empty where the rank exchanges nothing
  std::vector<device::Event> ended_;          // [op]: empty where no op waits for it
  device::Event start_;
  std::int64_t device_bytes_ = 0;
  std::int64_t sent_bytes_ = 0;
  // The parts of the exchange that is being queued, with memory for the largest one.
  mutable std::vector<MessagePart> sends_, receives_;
};

}  // namespace annulus::ring

#endif  // ANNULUS_RING_RANK_DRIVER_H_
