#ifndef ANNULUS_EXCHANGE_ATTENDEE_H_
#define ANNULUS_EXCHANGE_ATTENDEE_H_

// A rank that takes part in a meeting (meeting.h), and what all ranks do there.

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

// What is read at once of whoever is not known yet, which is more than it may send.
constexpr std::size_t kUnknownBytes = 1536;
// For the last words of a meeting that failed.
constexpr auto kFarewell = std::chrono::milliseconds(200);
constexpr auto kConnect = std::chrono::seconds(2);      // for one attempt to connect
constexpr auto kPause = std::chrono::milliseconds(20);  // between attempts
constexpr char kLoopback[] = "127.0.0.1";
constexpr char kReached[] = "reached all others";  // what not_within() says of a rank

struct Self {
  const RendezvousOptions& options;
  TimePoint end;

  std::string name() const { return fmt::format("rank {} of {}", options.rank, options.ranks); }
  bool late() const { return SteadyClock::now() >= end; }
  // The latest moment for something that may take so long.
  TimePoint within(SteadyClock::duration time) const {
    return std::min(end, SteadyClock::now() + time);
  }
};

// What rank 0 says while others are missing, which it repeats.
constexpr auto kBeat = std::chrono::milliseconds(500);
struct News {
  std::vector<int> missing;
  TimePoint heard{};  // when it came last

  // Whom the rank has to name that waits in vain: the missing ones but itself; rank 0 where there
  // are none, or where it has stopped saying so.
  std::vector<int> named_by(int rank) const;
};

// Why this process cannot take part in the meeting: it may not open as many descriptors as it has
// connections. Nothing where it can.
struct Shortage {
  Refusal refusal;
  bool can_tell = false;  // whether the descriptors are enough to tell rank 0
};
std::optional<Shortage> find_shortage(const Self& self);

Nonce new_nonce();
bool is_any(const std::string& host);  // the address of every interface

// Listens at one of the addresses. Throws Error{kCommunication} where that is not possible.
Socket listen_at_one(const Self& self, std::span<const SocketAddress> addresses);
// Listens on a port that the system chooses, and says where others reach it.
Socket listen_somewhere(const Self& self, const std::string& host, Endpoint* endpoint);

// The ranks from `first` on that are not connected to this one.
std::vector<int> closed_ones(const World& world, int first);
// "ranks 1 and 3 of 4 have not {what} within 300 ms"
std::string not_within(std::span<const int> which, const Self& self, const char* what);
Hello own_hello(const Self& self, const Nonce& nonce, const Endpoint& endpoint);
// The last words to everybody, of whom some may not listen.
void tell_all(std::span<Link> links, const Refusal& refusal);

}  // namespace annulus::exchange

#endif  // ANNULUS_EXCHANGE_ATTENDEE_H_
