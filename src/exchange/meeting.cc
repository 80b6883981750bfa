#include "exchange/meeting.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <thread>
#include <utility>

#include "base/fail.h"
#include "exchange/guests.h"
#include "exchange/names.h"

namespace annulus::exchange {
namespace {

using namespace std::chrono_literals;
using TimePoint = SteadyClock::time_point;

constexpr auto kLongest = std::chrono::hours(24);
constexpr auto kAnswer = 1s;       // for rank 0 to answer a hello
constexpr auto kConnect = 2s;      // for one attempt to connect
constexpr auto kPause = 20ms;      // between attempts
constexpr auto kFarewell = 200ms;  // for the last words of a meeting that failed
constexpr auto kLinger = 1s;       // for ranks that come to a meeting that has failed
constexpr auto kNews = 50ms;       // between two lists of who is missing
// What is read at once of whoever is not known yet, which is more than it may send.
constexpr std::size_t kUnknownBytes = 1536;
constexpr char kLoopback[] = "127.0.0.1";

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

void check_options(const RendezvousOptions& options, bool needs_token) {
  const auto refuse = [](const std::string& text) {
    throw Error(ErrorCode::kInvalidArgument, text);
  };
  if (options.ranks < 1 || options.ranks > kMostRanks || options.rank < 0 ||
      options.rank >= options.ranks) {
    refuse(fmt::format("rank {} of {}; ranks count from 0, and there are at most {}", options.rank,
                       options.ranks, kMostRanks));
  }
  if (options.deadline < 1ms || options.deadline > kLongest) {
    refuse(fmt::format("a deadline of {} ms for ranks to meet; give 1 ms to a day",
                       options.deadline.count()));
  }
  if (options.token.size() > kMostTokenBytes || (needs_token && options.token.empty())) {
    refuse(fmt::format("a session token of {} bytes; give 1 to {}", options.token.size(),
                       kMostTokenBytes));
  }
  if (!options.interface.empty() && !numeric_address({options.interface, 0})) {
    refuse(fmt::format("'{}' is no IP address of an interface", options.interface));
  }
}

Nonce new_nonce() {
  Nonce nonce{};
  if (getrandom(nonce.data(), nonce.size(), 0) != static_cast<ssize_t>(nonce.size())) {
    base::fail(ErrorCode::kInternal, "getrandom gave no {} bytes", nonce.size());
  }
  return nonce;
}

bool is_any(const std::string& host) { return host == "0.0.0.0" || host == "::"; }

// Listens at one of the addresses.
Socket listen_at_one(const Self& self, std::span<const SocketAddress> addresses) {
  std::string where, problem;
  for (const SocketAddress& address : addresses) {
    Socket listener = listen_at(address, &problem);
    if (listener.is_open()) return listener;
    where = address.endpoint().text();
  }
  base::fail(ErrorCode::kCommunication, "{} cannot listen on {}: {}", self.name(), where, problem);
}

// Listens on a port that the system chooses, and says where others reach it.
Socket listen_somewhere(const Self& self, const std::string& host, Endpoint* endpoint) {
  const std::string& chosen = self.options.interface.empty() ? host : self.options.interface;
  const std::optional<SocketAddress> address = numeric_address({chosen, 0});
  if (!address) base::fail(ErrorCode::kInternal, "'{}' is no address", chosen);
  Socket listener = listen_at_one(self, {&*address, 1});
  *endpoint = own_address(listener).value_or(*address).endpoint();
  if (is_any(endpoint->host)) endpoint->host = host;
  return listener;
}

// Whether the other side has not closed it.
bool still_there(const Link& link) {
  char byte;
  const ssize_t count = recv(link.handle(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  return count > 0 || (count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR));
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

// The last words to everybody, of whom some may not listen.
void tell_all(std::span<Link> links, const Refusal& refusal) {
  const auto frame = std::make_shared<const std::vector<std::byte>>(
      encode(FrameKind::kRefusal, 0, encode(refusal)));
  for (Link& link : links) {
    if (link.is_open()) link.put(frame);
  }
  flush_all(links, SteadyClock::now() + kFarewell);
}

void refuse(Socket socket, const Refusal& refusal) {
  Link link(std::move(socket), 0);
  tell_all({&link, 1}, refusal);
}

// --- Rank 0, which the others come to.

const Refusal kForeign = {ErrorCode::kInvalidArgument, "rank 0 has another session token"};

class Lobby {
 public:
  // With a nonce, whoever brings another one has come to another meeting.
  Lobby(const Self& self, Socket listener, std::optional<Nonce> nonce)
      : self_(self), guests_(std::move(listener)), nonce_(nonce) {
    world_ = {0, self.options.ranks,
              std::vector<Link>(static_cast<std::size_t>(self.options.ranks))};
    roster_.nonce = new_nonce();
    roster_.endpoints.resize(world_.links.size());
  }

  // Waits for all ranks and tells them where the others are.
  World fill() {
    while (!closed_ones(world_, 1).empty()) {
      const std::vector<int> missing = missing_ones();
      if (self_.late()) fail_for(missing);
      Poller poller;
      guests_.add_to(&poller);
      for (const Link& link : world_.links) {
        if (link.is_open()) poller.add(link.handle(), POLLIN);
      }
      poller.wait(told_ == missing ? guests_.next_end(self_.end)
                                   : std::min(guests_.next_end(self_.end), next_news_));
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
    world_.links[at] = Link(std::move(arrival.socket), Rendezvous::kMostBytes);
    world_.links[at].put(encode(FrameKind::kWelcome, 0, encode_welcome(self_.options.token)));
    world_.links[at].put(encode(FrameKind::kMissing, 0, encode_missing(missing_ones())));
    flush_all({&world_.links[at], 1}, SteadyClock::now());
  }

  // What all ranks have to learn of one that has the token.
  std::string problem_of(const Guests::Arrival& arrival) const {
    const Hello& hello = arrival.hello;
    const int ranks = world_.ranks;
    if (hello.version != kProtocolVersion) {
      return fmt::format(
          "rank {} speaks version {} of the protocol and rank 0 version {}; run one version of the "
          "library on all ranks",
          hello.rank, hello.version, kProtocolVersion);
    }
    if (hello.ranks != ranks) {
      return fmt::format("rank {} was told of {} ranks and rank 0 of {}", hello.rank, hello.ranks,
                         ranks);
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

  // A rank only waits now, so that whatever it says means that it goes.
  void hear(Link* link) {
    std::string reason;
    const bool good = link->receive(kUnknownBytes, &reason);
    const std::optional<Frame> frame = link->in().next();
    if (good && !frame && !link->in().broken()) return;
    const bool gives_up = frame && frame->kind == FrameKind::kRefusal;
    if (gives_up) gave_up_.push_back(static_cast<int>(link - world_.links.data()));
    link->close();
  }

  // Those that are waited for. Who was here and gave up, since its deadline is over, waited for the
  // same ones.
  std::vector<int> missing_ones() const {
    const std::vector<int> closed = closed_ones(world_, 1);
    std::vector<int> missing = closed;
    for (const int rank : gave_up_) std::erase(missing, rank);
    return missing.empty() ? closed : missing;
  }

  void tell_news(const std::vector<int>& missing) {
    if (missing.empty() || missing == told_ || SteadyClock::now() < next_news_) return;
    told_ = missing;
    next_news_ = SteadyClock::now() + kNews;
    const auto frame = std::make_shared<const std::vector<std::byte>>(
        encode(FrameKind::kMissing, 0, encode_missing(missing)));
    for (Link& link : world_.links) {
      if (link.is_open()) link.put(frame);
    }
    flush_all(world_.links, SteadyClock::now());
  }

  [[noreturn]] void fail_for(const std::vector<int>& missing) {
    std::string text = not_within(missing, self_, "come");
    if (other_tokens_ > 0) {
      text += fmt::format("; {} that came had another session token", other_tokens_);
    }
    if (guests_.strangers() > 0) text += fmt::format("; {} were strangers", guests_.strangers());
    tell_all(world_.links, {ErrorCode::kCommunication, text});
    throw Error(ErrorCode::kCommunication, text);
  }

  // Ranks differ: tells those that are here, and those that come within a moment.
  [[noreturn]] void fail(const std::string& text, Guests::Arrival offender) {
    const Refusal refusal = {ErrorCode::kInvalidArgument, text};
    refuse(std::move(offender.socket), refusal);
    std::vector<int> missing = closed_ones(world_, 1);
    const int others = std::min(offender.hello.ranks, kMostRanks);  // as it was told
    for (int rank = world_.ranks; rank < others; ++rank) missing.push_back(rank);
    std::erase(missing, offender.hello.rank);
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
    throw Error(ErrorCode::kInvalidArgument, text);
  }

  const Self& self_;
  Guests guests_;
  const std::optional<Nonce> nonce_;
  World world_;
  Roster roster_;
  std::vector<Guests::Arrival> arrived_;  // not judged yet
  std::vector<int> told_;
  std::vector<int> gave_up_;
  TimePoint next_news_ = SteadyClock::now() + kNews;
  int other_tokens_ = 0;
};

// Waits until all ranks are connected to all, and lets them go.
void lead(const Self& self, World* world) {
  std::vector<int> waited_for;
  for (int rank = 1; rank < world->ranks; ++rank) waited_for.push_back(rank);
  const auto fail = [&](const Refusal& refusal) {
    tell_all(world->links, refusal);
    throw Error(refusal.code.value_or(ErrorCode::kCommunication), refusal.text);
  };
  while (!waited_for.empty()) {
    if (self.late()) {
      fail({ErrorCode::kCommunication, not_within(waited_for, self, "reached all others")});
    }
    Poller poller;
    for (const Link& link : world->links) {
      if (link.is_open()) poller.add(link.handle(), POLLIN);
    }
    poller.wait(self.end);
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

// --- The other ranks.

// The next frame of rank 0 that is none of the list of the missing, which is kept. Nothing where
// `end` comes first. Throws what rank 0 says, and where it has gone.
std::optional<Frame> hear_leader(const Self& self, Link* leader, TimePoint end,
                                 std::vector<int>* missing) {
  std::string reason;
  for (bool good = true;;) {
    while (std::optional<Frame> frame = leader->in().next()) {
      if (frame->kind == FrameKind::kRefusal) {
        const Refusal refusal = parse_refusal(frame->bytes).value_or(Refusal{});
        throw Error(refusal.code.value_or(ErrorCode::kCommunication), refusal.text);
      }
      if (frame->kind != FrameKind::kMissing) return frame;
      *missing = parse_missing(frame->bytes, self.options.ranks).value_or(std::vector<int>());
    }
    if (leader->in().broken()) reason = "what it said is no message";
    if (!good || leader->in().broken()) {
      leader->close();
      base::fail(ErrorCode::kCommunication, "rank 0 of {} has gone while the ranks met: {}",
                 self.options.ranks, reason);
    }
    Poller poller;
    poller.add(leader->handle(), POLLIN);
    if (!poller.wait(end)) return std::nullopt;
    good = leader->receive(Rendezvous::kMostBytes, &reason);
  }
}

// Connects to every rank below this one that is not connected yet, and waits for those above.
void connect_all(const Self& self, const Roster& roster, Socket listener, World* world) {
  const int own = world->rank;
  std::vector<int> missing;
  const auto hear = [&] {
    Link& leader = world->links[0];
    if (own != 0 && leader.is_open()) {
      hear_leader(self, &leader, SteadyClock::now(), &missing);
    }
  };
  const auto hello =
      encode(own_hello(self, roster.nonce, roster.endpoints[static_cast<std::size_t>(own)]));
  for (int rank = 0; rank < own; ++rank) {
    Link& link = world->links[static_cast<std::size_t>(rank)];
    const Endpoint& endpoint = roster.endpoints[static_cast<std::size_t>(rank)];
    std::string problem = "that is no address";
    while (!link.is_open()) {
      const std::optional<SocketAddress> address = numeric_address(endpoint);
      Socket socket;
      if (address) socket = connect_to(*address, self.within(kConnect), &problem);
      if (socket.is_open()) {
        link = Link(std::move(socket), Rendezvous::kMostBytes);
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
          Link(std::move(arrival.socket), Rendezvous::kMostBytes);
    }
  }
}

// Says that it is connected and waits until all are.
void follow(const Self& self, World* world) {
  Link& leader = world->links[0];
  leader.put(encode(FrameKind::kReady, 0, {}));
  flush_all({&leader, 1}, self.end);
  std::vector<int> missing;
  const std::optional<Frame> frame = hear_leader(self, &leader, self.end, &missing);
  if (frame && frame->kind == FrameKind::kGo) return;
  base::fail(ErrorCode::kCommunication, "rank 0 of {} has not let {} go within {} ms", world->ranks,
             self.name(), self.options.deadline.count());
}

// Connects all ranks; what fails on one is told to all.
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

// --- Files.

bool is_trusted(const base::FileSystem::Status& status) {
  return status.owner == geteuid() && (status.mode & (S_IWGRP | S_IWOTH)) == 0;
}

struct Problem {
  ErrorCode code = ErrorCode::kCommunication;
  std::string text = "nothing was tried";
};

std::optional<MeetingFile> read_meeting_file(base::FileSystem& files, const std::string& path,
                                             Problem* problem) {
  const std::size_t slash = path.rfind('/');
  const std::string folder = slash == std::string::npos ? "." : path.substr(0, slash + 1);
  const std::string name = slash == std::string::npos ? path : path.substr(slash + 1);
  std::vector<std::byte> bytes;
  // Opened in its folder, a link is not followed.
  const int held = files.open(base::kHere, folder, O_PATH | O_DIRECTORY, 0);
  base::FileResult result = {held, "open"};
  if (held >= 0) {
    result = base::try_read_file(files, held, name, kMostFileBytes, &bytes, is_trusted);
    files.close(held);
  }
  if (result.ok()) {
    std::string text;
    std::optional<MeetingFile> file = parse_file(bytes, &text);
    if (!file) *problem = {ErrorCode::kFile, fmt::format("the file '{}' {}", path, text)};
    return file;
  }
  struct Reason {
    int code;
    ErrorCode error;
    const char* text;
  };
  static constexpr Reason kReasons[] = {
      {-ENOENT, ErrorCode::kCommunication, "there is no file '{}'"},
      {-ELOOP, ErrorCode::kFile, "'{}' is a link, which is not followed"},
      {-EINVAL, ErrorCode::kFile, "'{}' is not a regular file"},
      {-EFBIG, ErrorCode::kFile, "the file '{}' is too large to be rank 0's"},
      {-EPERM, ErrorCode::kFile,
       "the file '{}' belongs to another user, or others may write to it"},
  };
  for (const Reason& reason : kReasons) {
    if (reason.code != result.code) continue;
    *problem = {reason.error, fmt::format(fmt::runtime(reason.text), path)};
    return std::nullopt;
  }
  *problem = {ErrorCode::kFile, fmt::format("cannot {} '{}': {}", result.step, path,
                                            base::describe_errno(result.code))};
  return std::nullopt;
}

// The file that rank 0 writes, while the ranks meet.
class PublishedFile {
 public:
  PublishedFile(base::FileSystem& files, const std::string& path, const MeetingFile& file)
      : files_(files), path_(path), nonce_(file.nonce) {
    const std::string text = file_text(file);
    const base::FileResult result = base::try_write_file(
        files, base::kHere, path, std::as_bytes(std::span(text.data(), text.size())), 0600);
    if (!result.ok()) {
      base::fail(ErrorCode::kFile, "cannot {} '{}' or the temporary beside it: {}", result.step,
                 path, base::describe_errno(result.code));
    }
  }
  PublishedFile(const PublishedFile&) = delete;
  PublishedFile& operator=(const PublishedFile&) = delete;
  ~PublishedFile() {
    try {
      Problem problem;
      const auto now = read_meeting_file(files_, path_, &problem);
      if (now && now->nonce == nonce_) files_.unlink(base::kHere, path_);
    } catch (...) {  // no memory: it stays, and is waited over as an old one
    }
  }

 private:
  base::FileSystem& files_;
  const std::string path_;
  const Nonce nonce_;
};

// --- Whole meetings.

World serve(const Self& self, const Address& address, base::FileSystem& files) {
  if (!address.path.empty()) {
    Endpoint endpoint;
    Socket listener = listen_somewhere(self, kLoopback, &endpoint);
    const MeetingFile file = {endpoint, new_nonce()};
    const PublishedFile published(files, address.path, file);
    World world = Lobby(self, std::move(listener), file.nonce).fill();
    lead(self, &world);
    return world;
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
  World world = Lobby(self, listen_at_one(self, addresses), std::nullopt).fill();
  lead(self, &world);
  return world;
}

// A rank that looks for rank 0.
class Caller {
 public:
  Caller(const Self& self, const Address& address, base::FileSystem& files)
      : self_(self), address_(address), files_(files) {}

  World join() {
    std::optional<Link> leader;
    while (!(leader = attempt())) {
      if (self_.late()) {
        throw Error(problem_.code,
                    fmt::format("{} has not reached rank 0 within {} ms: {}", self_.name(),
                                self_.options.deadline.count(), problem_.text));
      }
      std::this_thread::sleep_until(self_.within(kPause));
    }
    const std::optional<Frame> frame = hear_leader(self_, &*leader, self_.end, &missing_);
    if (!frame) {
      const std::vector<int> none = {0};
      const std::string text = not_within(missing_.empty() ? none : missing_, self_, "come");
      tell_all({&*leader, 1}, {ErrorCode::kCommunication, text});
      throw Error(ErrorCode::kCommunication, text);
    }
    const std::optional<Roster> roster = parse_roster(frame->bytes, self_.options.ranks);
    if (frame->kind != FrameKind::kRoster || !roster) {
      base::fail(ErrorCode::kCommunication, "rank 0 of {} sent no list of ranks",
                 self_.options.ranks);
    }
    World world = {self_.options.rank, self_.options.ranks, {}};
    world.links.resize(static_cast<std::size_t>(world.ranks));
    world.links[0] = std::move(*leader);
    return complete(self_, *roster, std::move(listener_), std::move(world));
  }

 private:
  // Where rank 0 may be.
  std::vector<SocketAddress> targets() {
    std::optional<MeetingFile> file;
    nonce_ = {};
    if (!address_.path.empty()) {
      file = read_meeting_file(files_, address_.path, &problem_);
      if (!file) return {};
      nonce_ = file->nonce;
    } else if (!found_.empty()) {
      return found_;
    }
    const Endpoint& at = file ? file->endpoint : address_.endpoint;
    std::string text;
    std::vector<SocketAddress> found = resolve(at, self_.end, &text);
    if (found.empty()) set_problem(at, text);
    if (!file) found_ = found;
    return found;
  }

  void set_problem(const Endpoint& at, const std::string& text) {
    problem_ = {ErrorCode::kCommunication, fmt::format("{}: {}", at.text(), text)};
    if (address_.path.empty()) return;
    problem_.text =
        fmt::format("the file '{}' is old or rank 0 has ended: {}", address_.path, problem_.text);
  }

  // Nothing where it should be tried again.
  std::optional<Link> attempt() {
    for (const SocketAddress& target : targets()) {
      std::string text;
      Socket socket = connect_to(target, self_.within(kConnect), &text);
      if (socket.is_open()) {
        std::optional<Link> leader = greet(std::move(socket), &text);
        if (leader) return leader;
      }
      // The deadline may have cut the last attempt short; the one before says more.
      if (!tried_ || !self_.late()) set_problem(target.endpoint(), text);
      tried_ = true;
    }
    return std::nullopt;
  }

  // Says hello and waits for the answer.
  std::optional<Link> greet(Socket socket, std::string* problem) {
    const std::optional<SocketAddress> own = own_address(socket);
    if (!own) {
      *problem = "the connection has ended";
      return std::nullopt;
    }
    const std::string host = own->endpoint().host;
    if (!listener_.is_open() || host != host_) {
      listener_ = listen_somewhere(self_, host, &endpoint_);
      host_ = host;
    }
    Link leader(std::move(socket), kUnknownBytes);
    leader.put(encode(own_hello(self_, nonce_, endpoint_)));
    const TimePoint end = self_.within(kAnswer);
    flush_all({&leader, 1}, end);
    *problem = "whoever listens there does not answer as rank 0 would";
    while (leader.is_open()) {
      Poller poller;
      poller.add(leader.handle(), POLLIN);
      if (!poller.wait(end)) break;
      std::string reason;
      const bool good = leader.receive(kUnknownBytes, &reason);
      const std::optional<Frame> frame = leader.in().next();
      if (frame) return answered(std::move(leader), *frame, problem);
      if (!good || leader.in().broken()) break;
    }
    return std::nullopt;
  }

  std::optional<Link> answered(Link leader, const Frame& frame, std::string* problem) {
    if (frame.kind == FrameKind::kWelcome) {
      const std::optional<std::string> token = parse_welcome(frame.bytes);
      if (!token || !same_token(*token, self_.options.token)) return std::nullopt;
      leader.in().accept_up_to(SIZE_MAX);
      return leader;
    }
    if (frame.kind != FrameKind::kRefusal) return std::nullopt;
    const std::optional<Refusal> refusal = parse_refusal(frame.bytes);
    if (!refusal) return std::nullopt;
    if (refusal->code) {
      throw Error(*refusal->code, fmt::format("{} was turned away at {}: {}", self_.name(),
                                              peer_text(leader.socket()), refusal->text));
    }
    *problem = refusal->text;
    return std::nullopt;
  }

  const Self& self_;
  const Address& address_;
  base::FileSystem& files_;
  std::vector<SocketAddress> found_;  // of a name
  Nonce nonce_{};                     // of the file
  std::string host_;                  // from which rank 0 is reached
  Socket listener_;
  Endpoint endpoint_;  // where it listens
  std::vector<int> missing_;
  bool tried_ = false;
  Problem problem_;  // of the last attempt
};

// What the ranks brought to an all-gather, which all of them see alike.
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
      differ(fmt::format("rank {} speaks version {} of the protocol and rank {} version {}", rank,
                         hello->version, self.options.rank, kProtocolVersion));
    }
    if (hello->rank != rank || hello->ranks != ranks) {
      differ(fmt::format("at place {} of {} in the all-gather is rank {} of {}", rank, ranks,
                         hello->rank, hello->ranks));
    }
    if (!same_token(hello->token, self.options.token)) {
      differ(
          fmt::format("rank {} has another session token than rank {}", rank, self.options.rank));
    }
    if (rank == 0) roster.nonce = hello->nonce;
    if (hello->endpoint.port == 0) deaf.push_back(rank);
    roster.endpoints.push_back(hello->endpoint);
  }
  if (!deaf.empty()) {
    base::fail(ErrorCode::kCommunication, "{} {} no address to listen on", name_ranks(deaf, ranks),
               have(deaf));
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
  return options.rank == 0 ? serve(self, address, files) : Caller(self, address, files).join();
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
  std::optional<Error> problem;  // told to the others, who would wait in the all-gather
  try {
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
