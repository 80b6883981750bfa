#ifndef ANNULUS_EXCHANGE_ATTENDEE_H_
#define ANNULUS_EXCHANGE_ATTENDEE_H_

// A rank that takes part in a meeting (meeting.h), and functions that all ranks use there.

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "exchange/frames.h"
#include "exchange/meeting.h"

namespace annulus::exchange {

using TimePoint = SteadyClock::time_point;

// The most bytes that are read at once from a peer that is not identified yet. It is more than such
// a peer may send.
constexpr std::size_t kUnknownBytes = 1536;
// The time limit for sending the final messages of a meeting that failed.
constexpr auto kFarewell = std::chrono::milliseconds(200);
constexpr auto kConnect = std::chrono::seconds(2);      // the time limit for one attempt to connect
constexpr auto kPause = std::chrono::milliseconds(20);  // the pause between attempts
constexpr char kLoopback[] = "127.0.0.1";
constexpr char kReached[] = "reached all others";  // an argument of not_within()

struct Self {
  const RendezvousOptions& options;
  TimePoint end;

  std::string name() const { return fmt::format("rank {} of {}", options.rank, options.ranks); }
  bool late() const { return SteadyClock::now() >= end; }
  // Now plus `time`, but not later than the deadline of the meeting.
  TimePoint within(SteadyClock::duration time) const {
    return std::min(end, SteadyClock::now() + time);
  }
};

// The interval at which rank 0 sends the list of missing ranks again.
constexpr auto kBeat = std::chrono::milliseconds(500);
struct News {
  std::vector<int> missing;
  TimePoint heard{};  // the arrival of the last list

  // The ranks that `rank` names in its error if its wait fails: the missing ranks except itself. It
  // is rank 0 if no other rank is missing, or if rank 0 has stopped sending the list.
  std::vector<int> named_by(int rank) const;
};

// The reason why this process cannot take part in the meeting: its limit of open descriptors is
// lower than its number of connections. Returns nothing if the limit is high enough.
struct Shortage {
  Refusal refusal;
  bool can_tell = false;  // whether the descriptors suffice to inform rank 0
};
std::optional<Shortage> find_shortage(const Self& self);

Nonce new_nonce();
bool is_any(const std::string& host);  // whether it is the address that stands for every interface

// Listens at the first address where that is possible. Throws Error{kCommunication} if it is not
// possible at any of them.
Socket listen_at_one(const Self& self, std::span<const SocketAddress> addresses);
// Listens on a port that the system chooses. *endpoint receives the address at which others reach
// it.
Socket listen_somewhere(const Self& self, const std::string& host, Endpoint* endpoint);

// The ranks with numbers from `first` on that are not connected to this rank.
std::vector<int> closed_ones(const World& world, int first);
// For example "ranks 1 and 3 of 4 have not {what} within 300 ms".
std::string not_within(std::span<const int> which, const Self& self, const char* what);
Hello own_hello(const Self& self, const Nonce& nonce, const Endpoint& endpoint);
// Sends the refusal to all ranks before this rank leaves the meeting. Some of them may not read it.
void tell_all(std::span<Link> links, const Refusal& refusal);

}  // namespace annulus::exchange

#endif  // ANNULUS_EXCHANGE_ATTENDEE_H_
