#include "exchange/meeting.h"

#include <fmt/format.h>

#include <optional>
#include <utility>

#include "base/fail.h"
#include "exchange/caller.h"
#include "exchange/lobby.h"
#include "exchange/meeting_file.h"
#include "exchange/mesh.h"
#include "exchange/names.h"

namespace annulus::exchange {
namespace {

using namespace std::chrono_literals;

void check_options(const RendezvousOptions& options, bool needs_token) {
  const auto refuse = [](const std::string& text) {
    throw Error(ErrorCode::kInvalidArgument, text);
  };
  if (options.ranks < 1 || options.ranks > kMaxRanks || options.rank < 0 ||
      options.rank >= options.ranks) {
    refuse(fmt::format("rank {} of {}; ranks count from 0, and there are at most {}", options.rank,
                       options.ranks, kMaxRanks));
  }
  if (options.deadline < 1ms || options.deadline > kLongestDeadline) {
    refuse(fmt::format("a deadline of {} ms for ranks to meet; give 1 ms to a day",
                       options.deadline.count()));
  }
  if (options.token.size() > kMaxTokenBytes || (needs_token && options.token.empty())) {
    refuse(fmt::format("a session token of {} bytes; give 1 to {}", options.token.size(),
                       kMaxTokenBytes));
  }
  if (!options.interface.empty() && !numeric_address({options.interface, 0})) {
    refuse(fmt::format("'{}' is not the IP address of an interface", options.interface));
  }
}

// Rank 0's part of the meeting at `listener`.
World hold_meeting(const Self& self, Socket listener, std::optional<Nonce> nonce,
                   const std::optional<Shortage>& shortage) {
  if (shortage) turn_all_away(self, std::move(listener), nonce, shortage->refusal);
  World world = fill_lobby(self, std::move(listener), nonce);
  lead(self, &world);
  return world;
}

World serve(const Self& self, const Address& address, base::FileSystem& files) {
  const std::optional<Shortage> shortage = find_shortage(self);
  if (shortage && !shortage->can_tell) throw Error(*shortage->refusal.code, shortage->refusal.text);
  if (!address.path.empty()) {
    Endpoint endpoint;
    Socket listener = listen_somewhere(self, kLoopback, &endpoint);
    const MeetingFile file = {endpoint, new_nonce()};
    const PublishedFile published(files, address.path, file);
    return hold_meeting(self, std::move(listener), file.nonce, shortage);
  }
  std::string problem;
  const Endpoint& asked = address.endpoint;
  const Endpoint& chosen =
      self.options.interface.empty() ? asked : Endpoint{self.options.interface, asked.port};
  const std::vector<SocketAddress> addresses = resolve(chosen, self.end, &problem);
  if (addresses.empty()) {
    base::fail(ErrorCode::kCommunication, "{} cannot listen on {}: {}", self.name(), chosen.text(),
               problem);
  }
  return hold_meeting(self, listen_at_one(self, addresses), std::nullopt, shortage);
}

// The checked roster, from the bytes that the all-gather returned. All ranks reach the same result
// because they have the same bytes.
Roster judge_all(const Self& self, const std::vector<std::vector<std::byte>>& all) {
  const int ranks = self.options.ranks;
  const auto differ = [](const std::string& text) {
    throw Error(ErrorCode::kInvalidArgument, text);
  };
  if (all.size() != static_cast<std::size_t>(ranks)) {
    differ(fmt::format("the all-gather gave the bytes of {} ranks, and there are {}", all.size(),
                       ranks));
  }
  Roster roster;
  std::vector<int> deaf;
  for (int rank = 0; rank < ranks; ++rank) {
    const std::optional<Hello> hello = parse_hello(all[static_cast<std::size_t>(rank)]);
    if (!hello) differ(fmt::format("the all-gather gave no address of rank {}", rank));
    if (hello->version != kProtocolVersion) {
      differ(fmt::format("rank {} uses version {} of the protocol and rank {} version {}", rank,
                         hello->version, self.options.rank, kProtocolVersion));
    }
    if (hello->rank != rank || hello->ranks != ranks) {
      differ(fmt::format("at place {} of {} in the all-gather is rank {} of {}", rank, ranks,
                         hello->rank, hello->ranks));
    }
    if (!same_token(hello->token, self.options.token)) {
      differ(fmt::format("rank {} has a different session token from rank {}", rank,
                         self.options.rank));
    }
    if (rank == 0) roster.nonce = hello->nonce;
    if (hello->endpoint.port == 0) deaf.push_back(rank);
    roster.endpoints.push_back(hello->endpoint);
  }
  if (!deaf.empty()) {
    base::fail(ErrorCode::kCommunication,
               "{} {} no address to listen on; the error of that rank has the reason",
               name_ranks(deaf, ranks), have(deaf));
  }
  return roster;
}

}  // namespace

World meet(const RendezvousOptions& options, base::FileSystem& files) {
  check_options(options, true);
  const Self self = {options, SteadyClock::now() + options.deadline};
  if (options.ranks == 1) return {0, 1, std::vector<Link>(1)};
  const Address address = parse_address(options.address);
  if (!address.path.empty() && is_any(options.interface)) {
    base::fail(ErrorCode::kInvalidArgument,
               "'{}' is every interface; a file of a rendezvous has to name one",
               options.interface);
  }
  return options.rank == 0 ? serve(self, address, files) : join_meeting(self, address, files);
}

World meet_over(const AllGather& all_gather, const RendezvousOptions& options) {
  check_options(options, false);
  if (!all_gather) base::fail(ErrorCode::kInvalidArgument, "the all-gather is empty");
  if (options.ranks == 1) return {0, 1, std::vector<Link>(1)};
  if (is_any(options.interface)) {
    base::fail(ErrorCode::kInvalidArgument,
               "'{}' is every interface; ranks that meet over an all-gather have to name one",
               options.interface);
  }
  Self self = {options, SteadyClock::now() + options.deadline};
  Endpoint endpoint;
  Socket listener;
  // also sent to the other ranks, which would otherwise wait in the all-gather
  std::optional<Error> problem;
  try {
    if (const std::optional<Shortage> shortage = find_shortage(self)) {
      throw Error(*shortage->refusal.code, shortage->refusal.text);
    }
    listener = listen_somewhere(self, kLoopback, &endpoint);
  } catch (const Error& error) {
    problem = error;
  }
  const auto all = all_gather(encode(own_hello(self, new_nonce(), endpoint)));
  if (problem) throw *problem;
  const Roster roster = judge_all(self, all);
  self.end = SteadyClock::now() + options.deadline;
  World world = {options.rank, options.ranks,
                 std::vector<Link>(static_cast<std::size_t>(options.ranks))};
  return complete(self, roster, std::move(listener), std::move(world));
}

}  // namespace annulus::exchange
