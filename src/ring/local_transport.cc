#include "ring/local_transport.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <tuple>
#include <utility>

#include "base/fail.h"
#include "device/buffer.h"
#include "ring/rank_error.h"

namespace annulus::ring {
namespace {

abi::CUdeviceptr address(const void* data) { return reinterpret_cast<std::uintptr_t>(data); }

}  // namespace

void LocalTransport::End::exchange(int, std::span<const MessagePart> sent,
                                   std::span<const MessagePart> to_receive, abi::CUstream on) {
  sends = sent;
  receives = to_receive;
  stream = on;
  // Recorded before any rank waits for it, because a wait takes effect only for what was recorded
  // before. For the same reason one event of each kind suffices for all rounds.
  if (!sends.empty()) ready.record(stream);
}

LocalTransport::LocalTransport(std::span<const device::ContextPointer> contexts,
                               std::span<const RankSchedule* const> schedules, int rounds)
    : ends_(contexts.size()),
      meetings_(static_cast<std::size_t>(rounds)),
      by_receiver_(meetings_.size()),
      by_sender_(meetings_.size()) {
  for (std::size_t rank = 0; rank < contexts.size(); ++rank) {
    ends_[rank].context = contexts[rank];
    const bool exchanges = std::ranges::any_of(
        schedules[rank]->ops, [](const Op& op) { return op.kind == Op::Kind::kExchange; });
    if (!exchanges) continue;
    of_rank(static_cast<int>(rank), [&] {
      ends_[rank].ready = device::Event(contexts[rank]);
      ends_[rank].received = device::Event(contexts[rank]);
    });
  }
  for (int round = 0; round < rounds; ++round) {
    // (sender, receiver, number of the message between the two) -> index among the sender's sends.
    std::map<std::tuple<int, int, int>, std::size_t> sent;
    std::map<std::pair<int, int>, int> count;
    std::vector<Meeting>& meetings = meetings_[static_cast<std::size_t>(round)];
    const auto each = [&](bool sends, auto f) {
      count.clear();
      for (int rank = 0; rank < static_cast<int>(schedules.size()); ++rank) {
        int index = 0;
        const Op* op = schedules[static_cast<std::size_t>(rank)]->exchange_of(round, &index);
        if (op == nullptr) continue;
        const std::vector<Transfer>& transfers = sends ? op->sends : op->receives;
        for (std::size_t i = 0; i < transfers.size(); ++i) {
          const int from = sends ? rank : transfers[i].peer;
          const int to = sends ? transfers[i].peer : rank;
          f(std::tuple(from, to, count[{from, to}]++), i);
        }
      }
    };
    each(true, [&](const auto& message, std::size_t i) { sent[message] = i; });
    each(false, [&](const auto& message, std::size_t i) {
      const auto at = sent.find(message);
      const auto& [from, to, number] = message;
      if (at == sent.end()) {
        base::fail(ErrorCode::kInternal, "what rank {} receives of rank {} in round {} is not sent",
                   to, from, round);
      }
      meetings.push_back({from, to, at->second, i});
    });
    if (meetings.size() != sent.size()) {
      base::fail(ErrorCode::kInternal, "a message of round {} is sent and not received", round);
    }
    const auto pairs_by = [&](int Meeting::*key, int Meeting::*other) {
      std::vector<Meeting> pairs = meetings;
      const auto both = [&](const Meeting& meeting) {
        return std::pair(meeting.*key, meeting.*other);
      };
      std::ranges::sort(pairs, {}, both);
      const auto rest = std::ranges::unique(pairs, {}, both);
      pairs.erase(rest.begin(), rest.end());
      return pairs;
    };
    by_receiver_[static_cast<std::size_t>(round)] = pairs_by(&Meeting::to, &Meeting::from);
    by_sender_[static_cast<std::size_t>(round)] = pairs_by(&Meeting::from, &Meeting::to);
  }
  for (const std::vector<Meeting>& pairs : by_receiver_) {
    for (const Meeting& pair : pairs) {
      // Copies also work without peer access, but then they pass through the host.
      of_rank(pair.to,
              [&] { device::enable_peer_access(*end(pair.to).context, *end(pair.from).context); });
    }
  }
}

void LocalTransport::complete(int round) {
  const auto at = static_cast<std::size_t>(round);
  for (const Meeting& pair : by_receiver_[at]) {
    End& to = end(pair.to);
    of_rank(pair.to, [&] { device::wait(*to.context, to.stream, end(pair.from).ready); });
  }
  const std::vector<Meeting>& meetings = meetings_[at];
  for (std::size_t i = 0; i < meetings.size(); ++i) {
    const Meeting& meeting = meetings[i];
    End& to = end(meeting.to);
    const End& from = end(meeting.from);
    of_rank(meeting.to, [&] {
      const MessagePart& part = to.receives[meeting.received];
      device::copy_peer_async(*to.context, address(part.data), *from.context,
                              address(from.sends[meeting.sent].data),
                              static_cast<std::size_t>(part.bytes), to.stream);
      if (i + 1 == meetings.size() || meetings[i + 1].to != meeting.to) {
        to.received.record(to.stream);
      }
    });
  }
  for (const Meeting& pair : by_sender_[at]) {
    End& from = end(pair.from);
    of_rank(pair.from, [&] { device::wait(*from.context, from.stream, end(pair.to).received); });
  }
}

}  // namespace annulus::ring
