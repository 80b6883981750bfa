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

  // In front of the rounds of a run and behind them, then on the stream of the last one.
  std::int64_t begin_run() { return run_ = rank_->begin_run(); }
  void end_run(abi::CUstream stream) { rank_->end_run(stream, run_); }
  // Instead of the rest of it.
  void abandon_run(const char* why) noexcept { rank_->abandon_run(run_, why); }

  // Returns when the group is queued. Throws as exchange::Rank::exchange, naming the round.
  void exchange(int round, std::span<const MessagePart> sends,
                std::span<const MessagePart> receives, abi::CUstream stream) override;

 private:
  std::shared_ptr<exchange::Rank> rank_;
  std::int64_t run_ = 0;
  std::vector<SentBytes> sends_;
  std::vector<ReceivedBytes> receives_;
};

}  // namespace annulus::ring

#endif  // ANNULUS_RING_COMMUNICATOR_TRANSPORT_H_
