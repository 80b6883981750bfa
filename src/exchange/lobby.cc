#include "exchange/lobby.h"

#include <fmt/format.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <utility>

#include "base/fail.h"
#include "exchange/guests.h"
#include "exchange/names.h"

namespace annulus::exchange {
namespace {

// the time in which ranks that come to a failed meeting are refused
constexpr auto kLinger = std::chrono::seconds(1);
// the interval between two lists of missing ranks
constexpr auto kNews = std::chrono::milliseconds(50);

// Whether the other side has not closed the connection.
bool still_there(const Link& link) {
  char byte;
  const ssize_t count = recv(link.handle(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  return count > 0 || (count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR));
}

void refuse(Socket socket, const Refusal& refusal) {
  Link link(std::move(socket), 0);
  tell_all({&link, 1}, refusal);
}

void tell_missing(std::span<Link> links, std::span<const int> missing) {
  const auto frame = std::make_shared<const std::vector<std::byte>>(
      encode(FrameKind::kMissing, 0, encode_list(missing)));
  for (Link& link : links) {
    // A rank that does not read now gets a later list instead.
    if (link.is_open() && link.queued() == 0) link.put(frame);
  }
  flush_all(links, SteadyClock::now());
}

const Refusal kForeign = {ErrorCode::kInvalidArgument, "rank 0 has a different session token"};

class Lobby {
 public:
  // If a nonce is given, a rank that brings another nonce belongs to another meeting.
  Lobby(const Self& self, Socket listener, std::optional<Nonce> nonce)
      : self_(self), guests_(std::move(listener)), nonce_(nonce) {
    world_ = {0, self.options.ranks,
              std::vector<Link>(static_cast<std::size_t>(self.options.ranks))};
    roster_.nonce = new_nonce();
    roster_.endpoints.resize(world_.links.size());
  }

  // Waits for all ranks and sends them the addresses of the others.
  World fill() {
    while (!closed_ones(world_, 1).empty()) {
      const std::vector<int> missing = missing_ones();
      if (self_.late()) fail_for(missing);
      Poller poller;
      guests_.add_to(&poller);
      for (const Link& link : world_.links) {
        if (link.is_open()) poller.add(link.handle(), POLLIN);
      }
      poller.wait(std::min(guests_.next_end(self_.end), next_news_));
      arrived_ = guests_.take();
      while (!arrived_.empty()) judge(take_arrival());
      for (Link& link : world_.links) {
        if (link.is_open() && poller.events(link.handle()) != 0) hear(&link);
      }
      tell_news(missing_ones());
    }
    const auto frame = std::make_shared<const std::vector<std::byte>>(
        encode(FrameKind::kRoster, 0, encode(roster_)));
    for (Link& link : world_.links) {
      if (link.is_open()) link.put(frame);
    }
    flush_all(world_.links, self_.end);
    return std::move(world_);
  }

  // Sends the refusal to the ranks that are connected, and to missing ranks that arrive within a
  // moment.
  [[noreturn]] void turn_away(const Refusal& refusal, std::vector<int> missing) {
    tell_all(world_.links, refusal);
    const TimePoint end = self_.within(kLinger);
    while (!missing.empty() && SteadyClock::now() < end) {
      while (!arrived_.empty()) {
        Guests::Arrival arrival = take_arrival();
        const bool ours = same_token(arrival.hello.token, self_.options.token);
        if (ours) std::erase(missing, arrival.hello.rank);
        refuse(std::move(arrival.socket), ours ? refusal : kForeign);
      }
      if (missing.empty()) break;
      Poller poller;
      guests_.add_to(&poller);
      poller.wait(guests_.next_end(end));
      arrived_ = guests_.take();
    }
    throw Error(refusal.code.value_or(ErrorCode::kCommunication), refusal.text);
  }
  [[noreturn]] void turn_away(const Refusal& refusal) {
    turn_away(refusal, closed_ones(world_, 1));
  }

 private:
  Guests::Arrival take_arrival() {
    Guests::Arrival first = std::move(arrived_.front());
    arrived_.erase(arrived_.begin());
    return first;
  }

  void judge(Guests::Arrival arrival) {
    const Hello& hello = arrival.hello;
    if (!same_token(hello.token, self_.options.token)) {
      ++other_tokens_;
      refuse(std::move(arrival.socket), kForeign);
      return;
    }
    if (nonce_ && hello.version == kProtocolVersion && hello.nonce != *nonce_) {
      refuse(std::move(arrival.socket), {std::nullopt, "rank 0 has written another file"});
      return;
    }
    const std::string problem = problem_of(arrival);
    if (!problem.empty()) fail(problem, std::move(arrival));
    const auto at = static_cast<std::size_t>(hello.rank);
    std::erase(gave_up_, hello.rank);
    roster_.endpoints[at] = hello.endpoint;
    world_.links[at] = Link(std::move(arrival.socket), Rendezvous::kMaxBytes);
    world_.links[at].put(encode(FrameKind::kWelcome, 0, encode_welcome(self_.options.token)));
    world_.links[at].put(encode(FrameKind::kMissing, 0, encode_list(missing_ones())));
    flush_all({&world_.links[at], 1}, SteadyClock::now());
  }

  // The problem with a rank that has the right token. All ranks are informed of it. Empty if there
  // is none.
  std::string problem_of(const Guests::Arrival& arrival) const {
    const Hello& hello = arrival.hello;
    const int ranks = world_.ranks;
    if (hello.version != kProtocolVersion) {
      return fmt::format(
          "rank {} uses version {} of the protocol and rank 0 version {}; run one version of the "
          "library on all ranks",
          hello.rank, hello.version, kProtocolVersion);
    }
    if (hello.ranks != ranks) {
      return fmt::format("rank {} is configured for {} ranks and rank 0 for {}", hello.rank,
                         hello.ranks, ranks);
    }
    if (hello.rank < 0 || hello.rank >= ranks) {
      return fmt::format("a rank {} of {} has come", hello.rank, ranks);
    }
    if (hello.rank == 0) {
      return fmt::format("two ranks are rank 0 of {}; the second came from {}", ranks,
                         peer_text(arrival.socket));
    }
    const Link& before = world_.links[static_cast<std::size_t>(hello.rank)];
    if (!before.is_open() || !still_there(before)) return "";
    return fmt::format("two ranks are rank {} of {}; they came from {} and {}", hello.rank, ranks,
                       peer_text(before.socket()), peer_text(arrival.socket));
  }

  // A rank only waits at this stage, so whatever it sends means that it leaves.
  void hear(Link* link) {
    std::string reason;
    const bool good = link->receive(kUnknownBytes, &reason);
    const std::optional<Frame> frame = link->in().next();
    if (good && !frame && !link->in().broken()) return;
    const bool gives_up = frame && frame->kind == FrameKind::kRefusal;
    const int rank = static_cast<int>(link - world_.links.data());
    link->close();
    if (!gives_up) return;
    gave_up_.push_back(rank);
    const Refusal refusal = parse_refusal(frame->bytes).value_or(Refusal{});
    // kCommunication means that its deadline is over. For any other code the rank cannot take part,
    // and the meeting fails without it.
    if (refusal.code.value_or(ErrorCode::kCommunication) == ErrorCode::kCommunication) return;
    std::vector<int> missing = closed_ones(world_, 1);
    std::erase(missing, rank);
    turn_away(refusal, std::move(missing));
  }

  // The ranks that are waited for. A rank that connected and then gave up, because its deadline was
  // over, is not one of them: it waited for the same ranks.
  std::vector<int> missing_ones() const {
    const std::vector<int> closed = closed_ones(world_, 1);
    std::vector<int> missing = closed;
    for (const int rank : gave_up_) std::erase(missing, rank);
    return missing.empty() ? closed : missing;
  }

  void tell_news(const std::vector<int>& missing) {
    const TimePoint now = SteadyClock::now();
    if (missing != told_) next_news_ = std::min(next_news_, told_at_ + kNews);
    if (missing.empty() || now < next_news_) return;
    told_ = missing;
    told_at_ = now;
    next_news_ = now + kBeat;
    tell_missing(world_.links, missing);
  }

  [[noreturn]] void fail_for(const std::vector<int>& missing) {
    std::string text = not_within(missing, self_, "come");
    if (other_tokens_ > 0) {
      text += fmt::format("; {} that came had a different session token", other_tokens_);
    }
    if (guests_.strangers() > 0) text += fmt::format("; {} were strangers", guests_.strangers());
    tell_all(world_.links, {ErrorCode::kCommunication, text});
    throw Error(ErrorCode::kCommunication, text);
  }

  // Fails because ranks differ. Sends the reason to the ranks that are connected, and to ranks that
  // arrive within a moment.
  [[noreturn]] void fail(const std::string& text, Guests::Arrival offender) {
    const Refusal refusal = {ErrorCode::kInvalidArgument, text};
    refuse(std::move(offender.socket), refusal);
    std::vector<int> missing = closed_ones(world_, 1);
    // as the offender was configured
    const int others = std::min(offender.hello.ranks, kMaxRanks);
    for (int rank = world_.ranks; rank < others; ++rank) missing.push_back(rank);
    std::erase(missing, offender.hello.rank);
    turn_away(refusal, std::move(missing));
  }

  const Self& self_;
  Guests guests_;
  const std::optional<Nonce> nonce_;
  World world_;
  Roster roster_;
  std::vector<Guests::Arrival> arrived_;  // hellos that are not checked yet
  std::vector<int> told_;                 // the missing ranks in the last list that was sent
  TimePoint told_at_ = SteadyClock::now();
  std::vector<int> gave_up_;
  TimePoint next_news_ = SteadyClock::now() + kNews;
  int other_tokens_ = 0;
};

}  // namespace

World fill_lobby(const Self& self, Socket listener, std::optional<Nonce> nonce) {
  return Lobby(self, std::move(listener), nonce).fill();
}

void turn_all_away(const Self& self, Socket listener, std::optional<Nonce> nonce,
                   const Refusal& refusal) {
  Lobby(self, std::move(listener), nonce).turn_away(refusal);
}

void lead(const Self& self, World* world) {
  std::vector<int> waited_for;
  for (int rank = 1; rank < world->ranks; ++rank) waited_for.push_back(rank);
  const auto fail = [&](const Refusal& refusal) {
    tell_all(world->links, refusal);
    throw Error(refusal.code.value_or(ErrorCode::kCommunication), refusal.text);
  };
  TimePoint next_news = SteadyClock::now();
  while (!waited_for.empty()) {
    if (self.late()) {
      fail({ErrorCode::kCommunication, not_within(waited_for, self, kReached)});
    }
    if (SteadyClock::now() >= next_news) {
      tell_missing(world->links, waited_for);
      next_news = SteadyClock::now() + kBeat;
    }
    Poller poller;
    for (const Link& link : world->links) {
      if (link.is_open()) poller.add(link.handle(), POLLIN);
    }
    poller.wait(std::min(self.end, next_news));
    for (int rank = 1; rank < world->ranks; ++rank) {
      Link& link = world->links[static_cast<std::size_t>(rank)];
      if (poller.events(link.handle()) == 0) continue;
      std::string reason;
      const bool good = link.receive(kUnknownBytes, &reason);
      const std::optional<Frame> frame = link.in().next();
      if (frame && frame->kind == FrameKind::kReady) {
        std::erase(waited_for, rank);
        continue;
      }
      if (frame && frame->kind == FrameKind::kRefusal) {
        fail(parse_refusal(frame->bytes).value_or(Refusal{}));
      }
      if (good && !frame && !link.in().broken()) continue;
      link.close();
      fail({ErrorCode::kCommunication,
            fmt::format("{} has gone while the ranks met{}", name_ranks({&rank, 1}, world->ranks),
                        reason.empty() ? "" : fmt::format(": {}", reason))});
    }
  }
  const auto go = std::make_shared<const std::vector<std::byte>>(encode(FrameKind::kGo, 0, {}));
  for (Link& link : world->links) {
    if (link.is_open()) link.put(go);
  }
  flush_all(world->links, std::max(self.end, SteadyClock::now() + kFarewell));
}

}  // namespace annulus::exchange
