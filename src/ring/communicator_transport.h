#ifndef ANNULUS_RING_COMMUNICATOR_TRANSPORT_H_
#define ANNULUS_RING_COMMUNICATOR_TRANSPORT_H_

// The transport of a rank whose peers are anywhere: a round is one group of messages of NCCL.

#include <memory>
#include <vector>

#include "exchange/rank.h"
#include "ring/schedule.h"
#include "ring/transport.h"

namespace annulus::ring {

class CommunicatorTransport final : public Transport {
 public:
  // Takes memory for the largest round of the schedule.
  CommunicatorTransport(std::shared_ptr<exchange::Rank> rank, const RankSchedule& schedule);

  // Returns when the group is queued. Throws as exchange::Rank::exchange, naming the round.
  void exchange(int round, std::span<const MessagePart> sends,
                std::span<const MessagePart> receives, abi::CUstream stream) override;

 private:
  std::shared_ptr<exchange::Rank> rank_;
  std::vector<SentBytes> sends_;
  std::vector<ReceivedBytes> receives_;
};

}  // namespace annulus::ring

#endif  // ANNULUS_RING_COMMUNICATOR_TRANSPORT_H_
