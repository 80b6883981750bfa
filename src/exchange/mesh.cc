#include "exchange/mesh.h"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <thread>
#include <utility>

#include "base/fail.h"
#include "exchange/guests.h"
#include "exchange/lobby.h"
#include "exchange/names.h"

namespace annulus::exchange {

std::optional<Frame> hear_leader(const Self& self, Link* leader, TimePoint end, News* news) {
  std::string reason;
  for (bool good = true;;) {
    while (std::optional<Frame> frame = leader->in().next()) {
      if (frame->kind == FrameKind::kRefusal) {
        const Refusal refusal = parse_refusal(frame->bytes).value_or(Refusal{});
        throw Error(refusal.code.value_or(ErrorCode::kCommunication), refusal.text);
      }
      if (frame->kind != FrameKind::kMissing) return frame;
      news->missing = parse_list(frame->bytes, self.options.ranks).value_or(std::vector<int>());
      news->heard = SteadyClock::now();
    }
    if (leader->in().broken()) reason = "it sent bytes that are not a message";
    if (!good || leader->in().broken()) {
      leader->close();
      base::fail(ErrorCode::kCommunication, "rank 0 of {} has gone while the ranks met: {}",
                 self.options.ranks, reason);
    }
    Poller poller;
    poller.add(leader->handle(), POLLIN);
    if (!poller.wait(end)) return std::nullopt;
    good = leader->receive(Rendezvous::kMaxBytes, &reason);
  }
}

namespace {

// Connects to every rank with a lower number that is not connected yet, and waits for connections
// from ranks with higher numbers.
void connect_all(const Self& self, const Roster& roster, Socket listener, World* world) {
  const int own = world->rank;
  News news;
  const auto hear = [&] {
    Link& leader = world->links[0];
    if (own != 0 && leader.is_open()) {
      hear_leader(self, &leader, SteadyClock::now(), &news);
    }
  };
  const auto hello =
      encode(own_hello(self, roster.nonce, roster.endpoints[static_cast<std::size_t>(own)]));
  for (int rank = 0; rank < own; ++rank) {
    Link& link = world->links[static_cast<std::size_t>(rank)];
    const Endpoint& endpoint = roster.endpoints[static_cast<std::size_t>(rank)];
    std::string problem = "that is not an address";
    while (!link.is_open()) {
      const std::optional<SocketAddress> address = numeric_address(endpoint);
      Socket socket;
      if (address) socket = connect_to(*address, self.within(kConnect), &problem);
      if (socket.is_open()) {
        link = Link(std::move(socket), Rendezvous::kMaxBytes);
        link.put(hello);
        flush_all({&link, 1}, self.end);
        break;
      }
      if (self.late()) {
        base::fail(ErrorCode::kCommunication, "{} has not reached rank {} at {} within {} ms: {}",
                   self.name(), rank, endpoint.text(), self.options.deadline.count(), problem);
      }
      hear();
      std::this_thread::sleep_until(self.within(kPause));
    }
  }
  Guests guests(std::move(listener));
  while (true) {
    const std::vector<int> awaited = closed_ones(*world, own + 1);
    if (awaited.empty()) return;
    if (self.late()) {
      base::fail(ErrorCode::kCommunication, "{} has not been reached by {} within {} ms",
                 self.name(), name_ranks(awaited, world->ranks), self.options.deadline.count());
    }
    Poller poller;
    guests.add_to(&poller);
    const Link& leader = world->links[0];
    if (own != 0 && leader.is_open()) poller.add(leader.handle(), POLLIN);
    poller.wait(guests.next_end(self.end));
    hear();
    for (Guests::Arrival& arrival : guests.take()) {
      const Hello& hello_of = arrival.hello;
      const bool awaits = std::ranges::find(awaited, hello_of.rank) != awaited.end();
      if (!awaits || hello_of.version != kProtocolVersion || hello_of.nonce != roster.nonce ||
          !same_token(hello_of.token, self.options.token)) {
        continue;
      }
      world->links[static_cast<std::size_t>(hello_of.rank)] =
          Link(std::move(arrival.socket), Rendezvous::kMaxBytes);
    }
  }
}

// Reports to rank 0 that this rank is connected, and waits until all ranks are.
void follow(const Self& self, World* world) {
  Link& leader = world->links[0];
  leader.put(encode(FrameKind::kReady, 0, {}));
  flush_all({&leader, 1}, self.end);
  News news;
  const std::optional<Frame> frame = hear_leader(self, &leader, self.end, &news);
  if (frame && frame->kind == FrameKind::kGo) return;
  const std::vector<int> named = news.named_by(world->rank);
  if (named != std::vector<int>{0}) {
    throw Error(ErrorCode::kCommunication, not_within(named, self, kReached));
  }
  base::fail(ErrorCode::kCommunication,
             "rank 0 of {} has not sent the start message to {} within {} ms", world->ranks,
             self.name(), self.options.deadline.count());
}

}  // namespace

World complete(const Self& self, const Roster& roster, Socket listener, World world) {
  try {
    connect_all(self, roster, std::move(listener), &world);
    if (world.rank > 0) follow(self, &world);
  } catch (const Error& error) {
    const std::span<Link> links(world.links);
    tell_all(world.rank == 0 ? links : links.first(1), {error.code(), error.what()});
    throw;
  }
  if (world.rank == 0) lead(self, &world);
  return world;
}

}  // namespace annulus::exchange
