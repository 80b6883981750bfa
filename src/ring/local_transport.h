#ifndef ANNULUS_RING_LOCAL_TRANSPORT_H_
#define ANNULUS_RING_LOCAL_TRANSPORT_H_

// The transport of ranks that are all in one process. Several ranks may share a device. A message
// is a copy on the receiver's stream. It starts when both sides have reached the exchange, and both
// sides wait for its end, as with a send and a receive of NCCL.
//
// A rank only posts its side of a round. complete() queues the round after all ranks have posted.

#include <span>
#include <vector>

#include "device/stream.h"
#include "ring/schedule.h"
#include "ring/transport.h"

namespace annulus::ring {

class LocalTransport {
 public:
  // Creates two events for each rank that exchanges anything, and finds the sender and receiver of
  // each message. Throws Error{kInternal} for a message that is only sent or only received.
  // Requires: one context for each rank.
  LocalTransport(std::span<const device::ContextPointer> contexts,
                 std::span<const RankSchedule* const> schedules, int rounds);

  Transport& end_of(int rank) { return ends_[static_cast<std::size_t>(rank)]; }
  // Requires: all ranks that take part in the round have posted their sides. After the return the
  // posted parts are no longer used.
  void complete(int round);

 private:
  class End final : public Transport {
   public:
    void exchange(int round, std::span<const MessagePart> sends,
                  std::span<const MessagePart> receives, abi::CUstream stream) override;

    device::ContextPointer context;
    device::Event ready, received;
    std::span<const MessagePart> sends, receives;
    abi::CUstream stream = nullptr;
  };
  // A message: the n-th that `from` sends in a round, and the m-th that `to` receives in it.
  struct Meeting {
    int from = 0;
    int to = 0;
    std::size_t sent = 0;
    std::size_t received = 0;
  };

  End& end(int rank) { return ends_[static_cast<std::size_t>(rank)]; }

  std::vector<End> ends_;
  std::vector<std::vector<Meeting>> meetings_;  // [round], sorted by receiver
  // [round]: the pairs of ranks that exchange messages, each once. One list is sorted by receiver,
  // the other by sender.
  std::vector<std::vector<Meeting>> by_receiver_, by_sender_;
};

}  // namespace annulus::ring

#endif  // ANNULUS_RING_LOCAL_TRANSPORT_H_
