#include "ring/communicator_transport.h"

#include <algorithm>

#include "base/fail.h"

namespace annulus::ring {

CommunicatorTransport::CommunicatorTransport(std::shared_ptr<exchange::Rank> rank,
                                             const RankSchedule& schedule)
    : rank_(std::move(rank)) {
  std::size_t sends = 0, receives = 0;
  for (const Op& op : schedule.ops) {
    sends = std::max(sends, op.sends.size());
    receives = std::max(receives, op.receives.size());
  }
  sends_.resize(sends);
  receives_.resize(receives);
}

void CommunicatorTransport::exchange(int round, std::span<const MessagePart> sends,
                                     std::span<const MessagePart> receives, abi::CUstream stream) {
  std::ranges::transform(sends, sends_.begin(), [](const MessagePart& part) {
    return SentBytes{part.peer, part.data, static_cast<std::size_t>(part.bytes)};
  });
  std::ranges::transform(receives, receives_.begin(), [](const MessagePart& part) {
    return ReceivedBytes{part.peer, part.data, static_cast<std::size_t>(part.bytes)};
  });
  try {
    rank_->exchange(stream, std::span<const SentBytes>(sends_).first(sends.size()),
                    std::span<const ReceivedBytes>(receives_).first(receives.size()),
                    {run_, round});
  } catch (const Error& error) {
    base::fail(error.code(), "round {}: {}", round, error.what());
  }
}

}  // namespace annulus::ring
