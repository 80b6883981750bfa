#include "exchange/caller.h"

#include <fmt/format.h>
#include <poll.h>

#include <cstdint>
#include <optional>
#include <thread>
#include <utility>

#include "base/fail.h"
#include "exchange/meeting_file.h"
#include "exchange/mesh.h"

namespace annulus::exchange {
namespace {

constexpr auto kAnswer = std::chrono::seconds(1);  // the time limit for rank 0's answer to a hello

// A rank that looks for rank 0.
class Caller {
 public:
  Caller(const Self& self, const Address& address, base::FileSystem& files)
      : self_(self), address_(address), files_(files) {}

  World join() {
    const std::optional<Shortage> shortage = find_shortage(self_);
    if (shortage && !shortage->can_tell) fail(shortage->refusal);
    std::optional<Link> leader;
    while (!(leader = attempt())) {
      if (self_.late()) {
        throw Error(problem_.code,
                    fmt::format("{} has not reached rank 0 within {} ms: {}", self_.name(),
                                self_.options.deadline.count(), problem_.text));
      }
      std::this_thread::sleep_until(self_.within(kPause));
    }
    if (shortage) fail(shortage->refusal, &*leader);
    News news;
    const std::optional<Frame> frame = hear_leader(self_, &*leader, self_.end, &news);
    if (!frame) {
      const std::vector<int> named = news.named_by(self_.options.rank);
      fail({ErrorCode::kCommunication, not_within(named, self_, "come")}, &*leader);
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
  // Throws the refusal, after sending it to rank 0 if `leader` is not null.
  [[noreturn]] static void fail(const Refusal& refusal, Link* leader = nullptr) {
    if (leader != nullptr) tell_all({leader, 1}, refusal);
    throw Error(*refusal.code, refusal.text);
  }

  // The addresses at which rank 0 may listen.
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

  // Returns nothing if the caller should try again.
  std::optional<Link> attempt() {
    for (const SocketAddress& target : targets()) {
      std::string text;
      Socket socket = connect_to(target, self_.within(kConnect), &text);
      if (socket.is_open()) {
        std::optional<Link> leader = greet(std::move(socket), &text);
        if (leader) return leader;
      }
      // The deadline may have cut the last attempt short. Then the error of the attempt before is
      // more useful.
      if (!tried_ || !self_.late()) set_problem(target.endpoint(), text);
      tried_ = true;
    }
    return std::nullopt;
  }

  // Sends a hello and waits for the answer.
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
    *problem = "the process that listens there does not answer as rank 0 would";
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
      throw Error(*refusal->code, fmt::format("{} was refused at {}: {}", self_.name(),
                                              peer_text(leader.socket()), refusal->text));
    }
    *problem = refusal->text;
    return std::nullopt;
  }

  const Self& self_;
  const Address& address_;
  base::FileSystem& files_;
  std::vector<SocketAddress> found_;  // the addresses of a host name
  Nonce nonce_{};                     // the nonce in the meeting file
  std::string host_;                  // the host at which rank 0 is reached
  Socket listener_;
  Endpoint endpoint_;  // the address that listener_ listens on
  bool tried_ = false;
  Problem problem_;  // the problem of the last attempt
};

}  // namespace

World join_meeting(const Self& self, const Address& address, base::FileSystem& files) {
  return Caller(self, address, files).join();
}

}  // namespace annulus::exchange
