#ifndef ANNULUS_RING_COMMUNICATOR_TRANSPORT_H_
#define ANNULUS_RING_COMMUNICATOR_TRANSPORT_H_

// The transport of a rank whose peers may be in other processes: a round is one NCCL group of
// messages.

#include <memory>
#include <vector>

#include "exchange/rank.h"
#include "ring/schedule.h"
#include "ring/transport.h"

namespace annulus::ring {

class CommunicatorTransport final : public Transport {
 public:
  // Reserves memory for the largest round of the schedule.
  CommunicatorTransport(std::shared_ptr<exchange::Rank> rank, const RankSchedule& schedule);

  // begin_run() is called before the rounds of a run, and end_run() after them with the stream of
  // the last round.
  std::int64_t begin_run() { return run_ = rank_->begin_run(); }
  void end_run(abi::CUstream stream) { rank_->end_run(stream, run_); }
  // Called instead of the remaining rounds and end_run() if a run fails.
  void abandon_run(const char* why) noexcept { rank_->abandon_run(run_, why); }

  // Returns after the group is queued. Throws as exchange::Rank::exchange does, with the round in
  // the message.
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
