#include "exchange/attendee.h"

#include <fmt/format.h>
#include <sys/random.h>
#include <sys/resource.h>

#include <filesystem>
#include <iterator>
#include <memory>
#include <optional>
#include <system_error>
#include <utility>

#include "base/fail.h"
#include "exchange/names.h"

namespace annulus::exchange {

std::vector<int> News::named_by(int rank) const {
  std::vector<int> named = missing;
  std::erase(named, rank);
  if (named.empty() || SteadyClock::now() - heard > 3 * kBeat) named = {0};
  return named;
}

std::optional<Shortage> find_shortage(const Self& self) {
  // Descriptors that are needed in addition to the connections: a listener, an event, a few guests,
  // a file, and a socket that is opened before another one is closed.
  constexpr std::int64_t kOthers = 8, kToTell = 4;
  rlimit limit{};
  std::error_code error;
  std::filesystem::directory_iterator entry("/proc/self/fd", error);
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return std::nullopt;
  const auto most = static_cast<std::int64_t>(limit.rlim_cur);
  std::int64_t open = most;
  if (!error) {
    // without the descriptor of this folder
    open = std::distance(entry, std::filesystem::directory_iterator()) - 1;
  } else if (error != std::errc::too_many_files_open) {
    return std::nullopt;  // the descriptors cannot be counted
  }
  const std::int64_t needed = self.options.ranks - 1 + kOthers;
  const std::int64_t free = std::max<std::int64_t>(most - open, 0);
  if (free >= needed) return std::nullopt;
  return Shortage{
      {ErrorCode::kInvalidArgument,
       fmt::format("{} needs {} descriptors for the sockets of a meeting, and {} of its "
                   "limit of {} are free; raise the limit with ulimit -n to {} or more",
                   self.name(), needed, free, most, open + needed)},
      free >= kToTell};
}

Nonce new_nonce() {
  Nonce nonce{};
  if (getrandom(nonce.data(), nonce.size(), 0) != static_cast<ssize_t>(nonce.size())) {
    base::fail(ErrorCode::kInternal, "getrandom did not return {} bytes", nonce.size());
  }
  return nonce;
}

bool is_any(const std::string& host) { return host == "0.0.0.0" || host == "::"; }

Socket listen_at_one(const Self& self, std::span<const SocketAddress> addresses) {
  std::string where, problem;
  for (const SocketAddress& address : addresses) {
    Socket listener = listen_at(address, &problem);
    if (listener.is_open()) return listener;
    where = address.endpoint().text();
  }
  base::fail(ErrorCode::kCommunication, "{} cannot listen on {}: {}", self.name(), where, problem);
}

Socket listen_somewhere(const Self& self, const std::string& host, Endpoint* endpoint) {
  const std::string& chosen = self.options.interface.empty() ? host : self.options.interface;
  const std::optional<SocketAddress> address = numeric_address({chosen, 0});
  if (!address) base::fail(ErrorCode::kInternal, "'{}' is not an address", chosen);
  Socket listener = listen_at_one(self, {&*address, 1});
  *endpoint = own_address(listener).value_or(*address).endpoint();
  if (is_any(endpoint->host)) endpoint->host = host;
  return listener;
}

std::vector<int> closed_ones(const World& world, int first) {
  std::vector<int> closed;
  for (int rank = first; rank < world.ranks; ++rank) {
    const bool own = rank == world.rank;
    if (!own && !world.links[static_cast<std::size_t>(rank)].is_open()) closed.push_back(rank);
  }
  return closed;
}

std::string not_within(std::span<const int> which, const Self& self, const char* what) {
  return fmt::format("{} {} not {} within {} ms", name_ranks(which, self.options.ranks),
                     have(which), what, self.options.deadline.count());
}

Hello own_hello(const Self& self, const Nonce& nonce, const Endpoint& endpoint) {
  return {.rank = self.options.rank,
          .ranks = self.options.ranks,
          .token = self.options.token,
          .nonce = nonce,
          .endpoint = endpoint};
}

void tell_all(std::span<Link> links, const Refusal& refusal) {
  const auto frame = std::make_shared<const std::vector<std::byte>>(
      encode(FrameKind::kRefusal, 0, encode(refusal)));
  for (Link& link : links) {
    if (link.is_open()) link.put(frame);
  }
  flush_all(links, SteadyClock::now() + kFarewell);
}

}  // namespace annulus::exchange
