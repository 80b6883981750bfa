// Ranks find each other even if strangers connect, and exchange their bytes. Whatever process dies,
// every other rank returns in time and names it. Ranks are threads and processes.

#include "annulus/communicator.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <barrier>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iostream>
#include <iterator>
#include <optional>
#include <thread>

#include "annulus/types.h"
#include "exchange/address.h"
#include "exchange/socket.h"
#include "support/faulty_files.h"

namespace annulus {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;
using Bytes = std::vector<std::byte>;
using Millis = std::chrono::milliseconds;

// Every bounded call has ended by then, with deadlines of up to a second, even on a busy machine.
constexpr Millis kSoon = 4s;
constexpr char kToken[] = "a session of this test";

Bytes bytes_of(const std::string& text) {
  const auto* const data = reinterpret_cast<const std::byte*>(text.data());
  return {data, data + text.size()};
}
std::string text_of(const Bytes& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// The result of a call that may throw: the code, or 0, and the text.
struct Outcome {
  int code = 0;
  std::string text;
  Millis took{};

  bool says(ErrorCode expected, const std::string& part) const {
    const bool right = code == static_cast<int>(expected) && text.find(part) != std::string::npos;
    if (!right) MESSAGE("got " << code << ": " << text << ", not " << part);
    return right;
  }
};
Outcome outcome_of(const std::function<void()>& call) {
  Outcome outcome;
  const auto begin = Clock::now();
  try {
    call();
  } catch (const Error& error) {
    outcome.code = static_cast<int>(error.code());
    outcome.text = error.what();
  }
  outcome.took = std::chrono::duration_cast<Millis>(Clock::now() - begin);
  return outcome;
}

// A port that was free a moment ago.
std::uint16_t free_port() {
  std::string problem;
  const exchange::Socket socket =
      exchange::listen_at(*exchange::numeric_address({"127.0.0.1", 0}), &problem);
  REQUIRE(socket.is_open());
  return exchange::own_address(socket)->endpoint().port;
}
std::string free_address() { return fmt::format("tcp:127.0.0.1:{}", free_port()); }
exchange::Endpoint endpoint_of(const std::string& address) {
  return exchange::parse_address(address).endpoint;
}

RendezvousOptions options_of(const std::string& address, int rank, int ranks,
                             Millis deadline = 5s) {
  return {.address = address,
          .rank = rank,
          .ranks = ranks,
          .token = kToken,
          .interface = "",
          .deadline = deadline};
}

// Runs call(rank) for all ranks at once, and returns what each threw.
std::vector<Outcome> on_threads(int ranks, const std::function<void(int)>& call) {
  std::vector<Outcome> outcomes(static_cast<std::size_t>(ranks));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back(
        [&, rank] { outcomes[static_cast<std::size_t>(rank)] = outcome_of([&] { call(rank); }); });
  }
  for (std::thread& thread : threads) thread.join();
  return outcomes;
}

// An all-gather between threads, in place of an engine's.
class ThreadGather {
 public:
  explicit ThreadGather(int ranks) : all_(static_cast<std::size_t>(ranks)), barrier_(ranks) {}
  AllGather of(int rank) {
    return [this, rank](std::span<const std::byte> own) {
      all_[static_cast<std::size_t>(rank)].assign(own.begin(), own.end());
      barrier_.arrive_and_wait();
      return all_;
    };
  }

 private:
  std::vector<Bytes> all_;
  std::barrier<> barrier_;
};

// --- Connections of programs that are not ranks, or of ranks that violate the protocol.

exchange::Socket connected(const exchange::Endpoint& endpoint) {
  std::string problem;
  const auto end = Clock::now() + 3s;
  while (true) {
    exchange::Socket socket =
        exchange::connect_to(*exchange::numeric_address(endpoint), end, &problem);
    if (socket.is_open() || Clock::now() >= end) return socket;
    std::this_thread::sleep_for(2ms);
  }
}

bool wait_for_end(const exchange::Socket& socket, Millis longest) {
  const auto end = Clock::now() + longest;
  while (true) {
    exchange::Poller poller;
    poller.add(socket.handle(), POLLIN);
    if (!poller.wait(end)) return false;
    char chunk[4096];
    const ssize_t count = recv(socket.handle(), chunk, sizeof(chunk), 0);
    if (count == 0 || (count < 0 && errno != EAGAIN)) return true;
  }
}

exchange::Hello hello_of(int rank, int ranks) {
  return {.version = exchange::kProtocolVersion,
          .rank = rank,
          .ranks = ranks,
          .token = kToken,
          .nonce = {},
          .endpoint = {"127.0.0.1", 1}};
}

// A rank whose frames the test sends and reads itself.
class HandRank {
 public:
  HandRank(const exchange::Endpoint& endpoint, const exchange::Hello& hello)
      : link_(connected(endpoint), Rendezvous::kMaxBytes) {
    send(exchange::encode(hello));
  }
  void send(Bytes bytes) {
    link_.put(std::move(bytes));
    exchange::flush_all({&link_, 1}, Clock::now() + 2s);
  }
  // The next frame of that kind. Nothing if the connection ends first.
  std::optional<exchange::Frame> await(exchange::FrameKind kind) {
    while (link_.is_open()) {
      while (auto frame = link_.in().next()) {
        if (frame->kind == kind) return frame;
      }
      exchange::Poller poller;
      poller.add(link_.handle(), POLLIN);
      std::string reason;
      if (!poller.wait(Clock::now() + 3s) || !link_.receive(65536, &reason)) break;
    }
    return std::nullopt;
  }
  // Meets rank 0 in a world of two ranks.
  bool meet() {
    if (!await(exchange::FrameKind::kRoster)) return false;
    send(exchange::encode(exchange::FrameKind::kReady, 0, {}));
    return await(exchange::FrameKind::kGo).has_value();
  }
  exchange::Link& link() { return link_; }

 private:
  exchange::Link link_;
};

// --- Processes.

// Runs body() in a child process, which exits with the result of body().
pid_t start(const std::function<int()>& body) {
  std::cout.flush();
  const pid_t child = fork();
  if (child == 0) {
    int code = 100;
    try {
      code = body();
    } catch (const std::exception& error) {
      std::fprintf(stderr, "a rank ended with: %s\n", error.what());
    }
    std::cout.flush();
    _exit(code);
  }
  return child;
}
// The exit code of the child, or -1 if a signal ended it.
int end_of(pid_t child) {
  int status = 0;
  if (waitpid(child, &status, 0) != child) return -2;
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

// --- Meeting.

TEST_CASE("ranks meet by a port, a file or an all-gather, and each hears all") {
  test::ScratchFolder folder;
  for (int ranks = 1; ranks <= 8; ++ranks) {
    for (const std::string way : {"tcp", "file", "over"}) {
      CAPTURE(ranks);
      CAPTURE(way);
      const std::string address = way == "tcp" ? free_address() : "file:" + (folder / "meeting");
      ThreadGather engine(ranks);
      std::atomic<int> right = 0;
      const auto outcomes = on_threads(ranks, [&](int rank) {
        const RendezvousOptions options = options_of(address, rank, ranks);
        const Rendezvous all =
            way == "over" ? Rendezvous::over(engine.of(rank), options) : Rendezvous::meet(options);
        CHECK(all.rank() == rank);
        CHECK(all.ranks() == ranks);
        for (int call = 0; call < 3; ++call) {
          const std::string mine(static_cast<std::size_t>(call == 2 ? 65536 : 10 * rank),
                                 static_cast<char>('a' + rank + call));
          const auto got = all.all_gather(bytes_of(mine), 5s);
          bool good = got.size() == static_cast<std::size_t>(ranks);
          for (int other = 0; good && other < ranks; ++other) {
            const std::string expected(static_cast<std::size_t>(call == 2 ? 65536 : 10 * other),
                                       static_cast<char>('a' + other + call));
            good = text_of(got[static_cast<std::size_t>(other)]) == expected;
          }
          right += good ? 1 : 0;
        }
        CHECK(all.states().size() == static_cast<std::size_t>(ranks - 1));
      });
      for (const Outcome& outcome : outcomes) CHECK(outcome.text == "");
      CHECK(right == 3 * ranks);
    }
  }
  CHECK(folder.entries() == 0);  // rank 0 has removed its file
}

TEST_CASE("one rank needs no address, and wrong options are refused") {
  const Rendezvous alone = Rendezvous::meet({.address = "", .token = "x", .interface = ""});
  CHECK(alone.all_gather(bytes_of("me"), 1ms) == std::vector<Bytes>{bytes_of("me")});
  alone.post({1, 2, 3});
  CHECK(alone.states().empty());
  const auto refuses = [](const std::function<void(RendezvousOptions*)>& change,
                          const std::string& part) {
    RendezvousOptions options = options_of("tcp:127.0.0.1:1", 0, 2);
    change(&options);
    return outcome_of([&] { Rendezvous::meet(options); }).says(ErrorCode::kInvalidArgument, part);
  };
  using Options = RendezvousOptions*;
  CHECK(refuses([](Options o) { o->ranks = 0; }, "rank 0 of 0"));
  CHECK(refuses([](Options o) { o->rank = 2; }, "rank 2 of 2"));
  CHECK(refuses([](Options o) { o->rank = -1; }, "rank -1 of 2"));
  CHECK(refuses([](Options o) { o->ranks = 1025; }, "at most 1024"));
  CHECK(refuses([](Options o) { o->token = ""; }, "token of 0 bytes"));
  CHECK(refuses([](Options o) { o->token = std::string(64, 'x'); }, "token of 64 bytes"));
  CHECK(refuses([](Options o) { o->deadline = 0ms; }, "deadline of 0 ms"));
  CHECK(refuses([](Options o) { o->deadline = 25h; }, "deadline of 90000000 ms"));
  CHECK(refuses([](Options o) { o->interface = "eth0"; }, "'eth0' is not the IP address"));
  CHECK(refuses([](Options o) { o->address = "udp:a:1"; }, "an unknown kind"));
  CHECK(outcome_of([] {
          Rendezvous::over({}, options_of("", 0, 2));
        }).says(ErrorCode::kInvalidArgument, "the all-gather is empty"));
}

TEST_CASE("ranks that do not come are named by those that came, in time") {
  const std::string address = free_address();
  const auto outcomes = on_threads(4, [&](int rank) {
    if (rank % 2 == 0) Rendezvous::meet(options_of(address, rank, 4, 600ms));
  });
  for (const std::size_t rank : {0u, 2u}) {
    CHECK(outcomes[rank].says(ErrorCode::kCommunication,
                              "ranks 1 and 3 of 4 have not come within 600 ms"));
    CHECK(outcomes[rank].took < kSoon);
  }
  const Outcome alone = outcome_of([&] { Rendezvous::meet(options_of(address, 1, 4, 100ms)); });
  CHECK(alone.says(ErrorCode::kCommunication, "rank 1 of 4 has not reached rank 0 within 100 ms"));
  CHECK(alone.took < kSoon);
#ifndef __SANITIZE_THREAD__  // it does not support threads that the C library starts
  const Outcome unnamed =
      outcome_of([&] { Rendezvous::meet(options_of("tcp:no-such-host.invalid:9", 1, 4, 200ms)); });
  CHECK(unnamed.code == static_cast<int>(ErrorCode::kCommunication));
  CHECK(unnamed.took < kSoon);
#endif
}

TEST_CASE("strangers keep nobody waiting and are dropped") {
  const std::string address = free_address();
  const exchange::Endpoint at = endpoint_of(address);
  std::vector<exchange::Socket> silent;
  std::optional<Outcome> flooded;
  std::vector<Outcome> outcomes;
  std::thread ranks([&] {
    outcomes = on_threads(3, [&](int rank) {
      if (rank > 0) std::this_thread::sleep_for(150ms);
      const Rendezvous all = Rendezvous::meet(options_of(address, rank, 3));
      all.all_gather(bytes_of("x"), 5s);
    });
  });
  for (int i = 0; i < 6; ++i) silent.push_back(connected(at));
  exchange::Hello foreign = hello_of(1, 3);
  foreign.token = "another session";
  HandRank other(at, foreign);
  const auto refused = other.await(exchange::FrameKind::kRefusal);
  REQUIRE(refused);
  CHECK(exchange::parse_refusal(refused->bytes)->text == "rank 0 has a different session token");
  for (const std::string text : {"GET / HTTP/1.1\r\n\r\n", "annulus\n"}) {
    exchange::Link link(connected(at), 0);
    std::string flood;
    while (flood.size() < (1u << 20)) flood += text;
    link.put(bytes_of(flood));
    exchange::flush_all({&link, 1}, Clock::now() + 1s);
    CHECK((!link.is_open() || wait_for_end(link.socket(), 1s)));
  }
  ranks.join();
  for (const Outcome& outcome : outcomes) {
    CHECK(outcome.text == "");
    CHECK(outcome.took < kSoon);  // a second for each candidate would be longer
  }
}

TEST_CASE("who says nothing is dropped after a second, and another token is told apart") {
  const std::string address = free_address();
  Outcome served, foreign;
  std::thread zero(
      [&] { served = outcome_of([&] { Rendezvous::meet(options_of(address, 0, 2, 2s)); }); });
  const exchange::Socket silent = connected(endpoint_of(address));
  RendezvousOptions options = options_of(address, 1, 2, 2s);
  options.token = "a session of that test";
  foreign = outcome_of([&] { Rendezvous::meet(options); });
  CHECK(foreign.says(ErrorCode::kInvalidArgument, "rank 1 of 2 was refused at 127.0.0.1:"));
  CHECK(wait_for_end(silent, 3s));
  zero.join();
  CHECK(served.says(ErrorCode::kCommunication,
                    "rank 1 of 2 has not come within 2000 ms; 1 that came had a different session "
                    "token; 1 were strangers"));
  CHECK(served.took < kSoon);
}

TEST_CASE("who waits for the last ranks to connect names these, not rank 0") {
  const std::string address = free_address();
  std::string problem;
  const exchange::Socket listener =
      exchange::listen_at(*exchange::numeric_address({"127.0.0.1", 0}), &problem);
  std::atomic<bool> done = false;
  std::thread idle([&] {
    exchange::Hello hello = hello_of(1, 3);
    hello.endpoint = exchange::own_address(listener)->endpoint();
    HandRank hand(endpoint_of(address), hello);
    while (!done) std::this_thread::sleep_for(1ms);
  });
  const auto outcomes = on_threads(3, [&](int rank) {
    if (rank != 1) Rendezvous::meet(options_of(address, rank, 3, rank == 0 ? 1500ms : 700ms));
  });
  done = true;
  idle.join();
  CHECK(outcomes[2].says(ErrorCode::kCommunication,
                         "rank 1 of 3 has not reached all others within 700 ms"));
}

// Limits the descriptors that this process can still open to `count`.
void leave_descriptors(std::int64_t count) {
  const std::filesystem::directory_iterator open("/proc/self/fd"), end;
  const auto most = static_cast<rlim_t>(std::distance(open, end) - 1 + count);
  const rlimit limit = {most, most};
  setrlimit(RLIMIT_NOFILE, &limit);
}

TEST_CASE("strangers end no meeting of ranks that have few descriptors") {
  const std::string address = free_address();
  const pid_t zero = start([&] {
    leave_descriptors(12);
    const Outcome served = outcome_of([&] { Rendezvous::meet(options_of(address, 0, 3)); });
    return served.says(static_cast<ErrorCode>(0), "") && served.took < kSoon ? 0 : 1;
  });
  std::vector<exchange::Socket> silent;
  for (int i = 0; i < 100; ++i) silent.push_back(connected(endpoint_of(address)));
  const auto outcomes = on_threads(3, [&](int rank) {
    if (rank > 0) Rendezvous::meet(options_of(address, rank, 3));
  });
  for (const Outcome& outcome : outcomes) CHECK(outcome.text == "");
  CHECK(end_of(zero) == 0);
}

TEST_CASE("a rank that has too few descriptors is named on all at once, with what it needs") {
  for (const int poor : {0, 1}) {
    CAPTURE(poor);
    const std::string address = free_address();
    const std::string says = fmt::format(
        "rank {} of 40 needs 47 descriptors for the sockets of a meeting, and 20 of "
        "its limit of ",
        poor);
    const pid_t child = start([&] {
      leave_descriptors(20);
      const Outcome own = outcome_of([&] { Rendezvous::meet(options_of(address, poor, 40, 30s)); });
      return own.says(ErrorCode::kInvalidArgument, says) ? 0 : 1;
    });
    const Outcome other =
        outcome_of([&] { Rendezvous::meet(options_of(address, 1 - poor, 40, 30s)); });
    CHECK(other.says(ErrorCode::kInvalidArgument, says));
    CHECK(other.took < kSoon);
    CHECK(end_of(child) == 0);
  }
  const pid_t none = start([&] {
    const std::string address = free_address();
    leave_descriptors(1);
    for (const int rank : {0, 1}) {
      const Outcome own = outcome_of([&] { Rendezvous::meet(options_of(address, rank, 40, 30s)); });
      if (!own.says(ErrorCode::kInvalidArgument, "ulimit -n") || own.took > kSoon) return 1;
    }
    return 0;
  });
  CHECK(end_of(none) == 0);
}

TEST_CASE("a port that is taken is named") {
  std::string problem;
  const exchange::Socket taken =
      exchange::listen_at(*exchange::numeric_address({"127.0.0.1", 0}), &problem);
  const exchange::Endpoint at = exchange::own_address(taken)->endpoint();
  CHECK(outcome_of([&] {
          Rendezvous::meet(options_of("tcp:" + at.text(), 0, 2, 1s));
        }).says(ErrorCode::kCommunication, "cannot listen on " + at.text() + ": Address already"));
  // The program that listens there is not rank 0.
  CHECK(outcome_of([&] {
          Rendezvous::meet(options_of("tcp:" + at.text(), 1, 2, 200ms));
        }).says(ErrorCode::kCommunication, "does not answer as rank 0 would"));
}

TEST_CASE("ranks that differ all learn it at once") {
  struct Case {
    std::vector<std::pair<int, int>> ranks;  // rank and number of ranks, for each
    std::string says;
  };
  const Case cases[] = {
      {{{0, 3}, {1, 3}, {1, 3}}, "two ranks are rank 1 of 3; they came from 127.0.0.1:"},
      {{{0, 3}, {1, 3}, {2, 4}}, "rank 2 is configured for 4 ranks and rank 0 for 3"},
      {{{0, 2}, {1, 3}, {2, 3}}, "is configured for 3 ranks and rank 0 for 2"},
  };
  for (const Case& one : cases) {
    const std::string address = free_address();
    const auto outcomes = on_threads(3, [&](int i) {
      const auto [rank, ranks] = one.ranks[static_cast<std::size_t>(i)];
      Rendezvous::meet(options_of(address, rank, ranks, 3s));
    });
    for (const Outcome& outcome : outcomes) {
      CHECK(outcome.says(ErrorCode::kInvalidArgument, one.says));
    }
  }
}

TEST_CASE("a rank of another version or a second rank 0 ends the meeting") {
  for (const bool version : {true, false}) {
    const std::string address = free_address();
    std::vector<Outcome> outcomes;
    std::thread ranks([&] {
      outcomes =
          on_threads(2, [&](int rank) { Rendezvous::meet(options_of(address, rank, 3, 3s)); });
    });
    exchange::Hello hello = hello_of(version ? 2 : 0, 3);
    if (version) hello.version = 7;
    HandRank other(endpoint_of(address), hello);
    const std::string expected = version
                                     ? "rank 2 uses version 7 of the protocol and rank 0 version " +
                                           std::to_string(exchange::kProtocolVersion)
                                     : "two ranks are rank 0 of 3";
    const auto refusal = other.await(exchange::FrameKind::kRefusal);
    REQUIRE(refusal);
    CHECK(exchange::parse_refusal(refusal->bytes)->text.find(expected) == 0);
    ranks.join();
    for (const Outcome& outcome : outcomes) {
      CHECK(outcome.says(ErrorCode::kInvalidArgument, expected));
    }
  }
}

TEST_CASE("a rank that goes while the ranks meet is replaced before all have come, named after") {
  const std::string address = free_address();
  std::vector<Outcome> outcomes;
  std::thread ranks([&] {
    outcomes = on_threads(2, [&](int rank) { Rendezvous::meet(options_of(address, rank, 4, 3s)); });
  });
  for (int i = 0; i < 3; ++i) {
    HandRank dies(endpoint_of(address), hello_of(3, 4));
    CHECK(dies.await(exchange::FrameKind::kWelcome));
  }
  HandRank stays(endpoint_of(address), hello_of(2, 4));
  {
    HandRank dies(endpoint_of(address), hello_of(3, 4));
    CHECK(dies.await(exchange::FrameKind::kRoster));
  }
  ranks.join();
  CHECK(outcomes[0].says(ErrorCode::kCommunication, "rank 3 of 4 has gone while the ranks met"));
  CHECK(outcomes[1].says(ErrorCode::kCommunication, "rank 3 of 4 has gone while the ranks met"));
}

// --- Files.

TEST_CASE("a file that cannot be trusted or is no longer good is waited over, then named") {
  test::ScratchFolder folder;
  const std::string path = folder / "meeting";
  const auto write = [&](const std::string& text) {
    std::ofstream(path) << text;
    chmod(path.c_str(), 0600);
  };
  const exchange::MeetingFile old = {{"127.0.0.1", free_port()}, {}};
  const std::string whole = exchange::file_text(old);
  struct Case {
    std::function<void()> make;
    ErrorCode code;
    std::string says;
  };
  const Case cases[] = {
      {[] {}, ErrorCode::kCommunication, "there is no file"},
      {[&] { write(""); }, ErrorCode::kFile, "is half written"},
      {[&] { write(whole.substr(0, 40)); }, ErrorCode::kFile, "is half written"},
      {[&] { write("garbage\n"); }, ErrorCode::kFile, "was not written by rank 0"},
      {[&] { write(std::string(5000, 'x')); }, ErrorCode::kFile, "is too large"},
      {[&] { write(whole); }, ErrorCode::kCommunication, "is old or rank 0 has ended"},
      {[&] {
         write(whole);
         chmod(path.c_str(), 0620);
       },
       ErrorCode::kFile, "belongs to another user, or others may write to it"},
      {[&] {
         std::ofstream(folder / "real") << whole;
         CHECK(symlink((folder / "real").c_str(), path.c_str()) == 0);
       },
       ErrorCode::kFile, "is a link"},
      {[&] { CHECK(mkfifo(path.c_str(), 0600) == 0); }, ErrorCode::kFile, "is not a regular file"},
  };
  for (const Case& one : cases) {
    unlink(path.c_str());
    one.make();
    const Outcome outcome =
        outcome_of([&] { Rendezvous::meet(options_of("file:" + path, 1, 2, 60ms)); });
    CHECK(outcome.says(one.code, one.says));
    CHECK(outcome.took < kSoon);
  }
  // An existing file does not keep rank 0 from writing its own file, which only its user can read.
  for (const Case& one : cases) {
    unlink(path.c_str());
    one.make();
    const auto outcomes = on_threads(2, [&](int rank) {
      if (rank == 0) std::this_thread::sleep_for(30ms);
      Rendezvous::meet(options_of("file:" + path, rank, 2));
    });
    for (const Outcome& outcome : outcomes) CHECK(outcome.text == "");
  }
  Outcome alone;
  std::thread zero([&] {
    alone = outcome_of([&] { Rendezvous::meet(options_of("file:" + path, 0, 2, 300ms)); });
  });
  struct stat status {};
  const auto end = Clock::now() + 2s;
  while (stat(path.c_str(), &status) != 0 && Clock::now() < end) std::this_thread::sleep_for(1ms);
  CHECK((status.st_mode & 07777u) == 0600);
  zero.join();
  CHECK(alone.says(ErrorCode::kCommunication, "rank 1 of 2 has not come"));
  CHECK(stat(path.c_str(), &status) != 0);
  CHECK(outcome_of([&] {
          Rendezvous::meet(options_of("file:/no/such/folder", 0, 2, 1s));
        }).says(ErrorCode::kFile, "cannot create '/no/such/folder'"));
}

TEST_CASE("a file of another meeting whose port is in use again is waited over") {
  test::ScratchFolder folder;
  const std::string path = folder / "meeting";
  const auto outcomes = on_threads(2, [&](int rank) {
    if (rank == 0) {
      Rendezvous::meet(options_of("file:" + path, 0, 2));
      return;
    }
    // A copy of rank 0's file, with another nonce.
    std::ifstream file;
    std::string text;
    while (text.find("end\n") == std::string::npos) {
      std::this_thread::sleep_for(1ms);
      file = std::ifstream(path);
      text.assign(std::istreambuf_iterator<char>(file), {});
    }
    std::string problem;
    auto parsed = exchange::parse_file(bytes_of(text), &problem);
    REQUIRE(parsed);
    parsed->nonce[3] ^= std::byte{1};
    const std::string copy = folder / "copy";
    std::ofstream(copy) << exchange::file_text(*parsed);
    chmod(copy.c_str(), 0600);
    CHECK(outcome_of([&] {
            Rendezvous::meet(options_of("file:" + copy, 1, 2, 300ms));
          }).says(ErrorCode::kCommunication, "rank 0 has written another file"));
    Rendezvous::meet(options_of("file:" + path, 1, 2));
  });
  for (const Outcome& outcome : outcomes) CHECK(outcome.text == "");
}

// --- An all-gather of the engine's.

TEST_CASE("what an engine's all-gather brings is checked on every rank") {
  struct Case {
    std::function<std::vector<Bytes>(std::vector<Bytes>)> change;
    std::string says;
  };
  const auto with_hello = [](std::vector<Bytes> all,
                             const std::function<void(exchange::Hello*)>& change) {
    exchange::Hello hello = *exchange::parse_hello(all[1]);
    change(&hello);
    all[1] = exchange::encode(hello);
    return all;
  };
  const Case cases[] = {
      {[](auto all) {
         all.pop_back();
         return all;
       },
       "the bytes of 1 ranks, and there are 2"},
      {[](auto all) {
         std::swap(all[0], all[1]);
         return all;
       },
       "at place 0 of 2 in the all-gather is rank 1 of 2"},
      {[](auto all) {
         all[0].resize(17);
         return all;
       },
       "no address of rank 0"},
      {[&](auto all) { return with_hello(all, [](auto* hello) { hello->version = 9; }); },
       "rank 1 uses version 9"},
      {[&](auto all) { return with_hello(all, [](auto* hello) { hello->token = "y"; }); },
       "rank 1 has a different session token"},
      {[&](auto all) { return with_hello(all, [](auto* hello) { hello->endpoint.port = 0; }); },
       "rank 1 of 2 has no address to listen on"},
  };
  for (const Case& one : cases) {
    ThreadGather engine(2);
    const auto outcomes = on_threads(2, [&](int rank) {
      const AllGather gather = engine.of(rank);
      Rendezvous::over([&](std::span<const std::byte> own) { return one.change(gather(own)); },
                       options_of("", rank, 2));
    });
    for (const Outcome& outcome : outcomes) CHECK(outcome.text.find(one.says) != std::string::npos);
  }
  struct Mine {};
  const AllGather throws = [](std::span<const std::byte>) -> std::vector<Bytes> { throw Mine(); };
  CHECK_THROWS_AS(Rendezvous::over(throws, options_of("", 0, 2)), Mine);
}

// --- The control channel.

TEST_CASE("a rank that is late is named, and may come afterwards") {
  const std::string address = free_address();
  std::atomic<bool> named = false;
  const auto outcomes = on_threads(3, [&](int rank) {
    const Rendezvous all = Rendezvous::meet(options_of(address, rank, 3));
    if (rank == 2) {
      while (!named) std::this_thread::sleep_for(1ms);
      // Rank 2 is one call late, and the others have already waited for that call.
      CHECK(text_of(all.all_gather(bytes_of("2"), 1s)[0]) == "first of 0");
    } else {
      const auto late = outcome_of([&] {
        all.all_gather(bytes_of(fmt::format("first of {}", rank)), Millis(100 + 200 * rank));
      });
      CHECK(late.says(ErrorCode::kCommunication, "rank 2 of 3 has not come within"));
      CHECK(late.took < kSoon);
      if (rank == 1) named = true;
    }
    const auto got = all.all_gather(bytes_of(fmt::format("second of {}", rank)), 3s);
    for (int other = 0; other < 3; ++other) {
      CHECK(text_of(got[static_cast<std::size_t>(other)]) == fmt::format("second of {}", other));
    }
    CHECK(outcome_of([&] {
            all.all_gather(Bytes(65537), 1s);
          }).says(ErrorCode::kInvalidArgument, "65537 bytes"));
    CHECK(outcome_of([&] {
            all.all_gather({}, 0ms);
          }).says(ErrorCode::kInvalidArgument, "deadline of 0 ms"));
  });
  for (const Outcome& outcome : outcomes) CHECK(outcome.text == "");
}

TEST_CASE("one thread at a time gathers") {
  const std::string address = free_address();
  on_threads(2, [&](int rank) {
    const Rendezvous all = Rendezvous::meet(options_of(address, rank, 2));
    if (rank == 1) {
      std::this_thread::sleep_for(250ms);
      return;
    }
    std::thread first([&] { CHECK(all.gather({}, 200ms).late == std::vector<int>{1}); });
    std::this_thread::sleep_for(50ms);
    CHECK(outcome_of([&] {
            all.gather({}, 1ms);
          }).says(ErrorCode::kInvalidArgument, "another thread"));
    first.join();
  });
}

TEST_CASE("the last position that a rank posts arrives") {
  const std::string address = free_address();
  constexpr int kPosts = 20000;
  const auto outcomes = on_threads(3, [&](int rank) {
    const Rendezvous all = Rendezvous::meet(options_of(address, rank, 3));
    for (const RankState& state : all.states()) CHECK(!state.gone);
    for (int i = 1; i <= kPosts; ++i) all.post({rank, i, -i});
    const auto end = Clock::now() + 3s;
    bool there = false;
    while (!there && Clock::now() < end) {
      const auto states = all.states();
      there = std::ranges::all_of(states, [&](const RankState& state) {
        // A state never mixes two posts.
        CHECK((!state.posted || (state.position.run == -state.position.round &&
                                 state.position.generation == state.rank)));
        return state.posted && state.position.run == kPosts;
      });
    }
    CHECK(there);
    all.all_gather({}, 3s);
  });
  for (const Outcome& outcome : outcomes) CHECK(outcome.text == "");
}

TEST_CASE("a rank that floods or says what does not belong there is dropped") {
  const auto gather = [](std::uint64_t number) {
    return exchange::encode(exchange::FrameKind::kGather, number, Bytes(1000));
  };
  Bytes ahead;
  for (std::uint64_t number = 1; number < 40; ++number) {
    const Bytes one = gather(number);
    ahead.insert(ahead.end(), one.begin(), one.end());
  }
  Bytes huge = gather(1);
  huge[18] = std::byte{2};  // declares 128 KiB more
  const auto list = [](exchange::FrameKind kind, std::uint64_t number, std::vector<int> ranks) {
    return exchange::encode(kind, number, exchange::encode_list(ranks));
  };
  const Bytes stranger = exchange::encode(exchange::Notice{{1, 7}, "rank 7 of 2 is late"});
  Bytes channels;
  for (std::uint64_t number = 1; number < 5000; ++number) {
    const Bytes one = exchange::encode(exchange::FrameKind::kPosition, number, Bytes(24));
    channels.insert(channels.end(), one.begin(), one.end());
  }
  const std::pair<Bytes, std::string> cases[] = {
      {ahead, "it is too many calls ahead"},
      {gather(2), "it sent an unexpected message"},
      {exchange::encode(exchange::FrameKind::kGo, 0, {}), "it sent an unexpected message"},
      {exchange::encode(exchange::FrameKind::kPosition, 0, Bytes(23)),
       "it sent an invalid position"},
      {channels, "it is too many channels ahead"},
      {exchange::encode(exchange::FrameKind::kNotice, 0, stranger), "it sent an invalid notice"},
      {exchange::encode(exchange::FrameKind::kNotice, 1, Bytes(3)), "it sent an invalid notice"},
      {exchange::encode(exchange::FrameKind::kClosed, ~std::uint64_t{0}, {}),
       "it is too many channels ahead"},
      {exchange::encode(exchange::FrameKind::kAnswer, 1, {}), "it sent an answer to no question"},
      {list(exchange::FrameKind::kSurvivors, 2, {0, 2}), "it sent an invalid list of ranks"},
      {list(exchange::FrameKind::kSurvivors, 3, {0, 1}), "it sent an invalid list of ranks"},
      {list(exchange::FrameKind::kGeneration, 2, {1, 0}), "it sent an invalid list of ranks"},
      {list(exchange::FrameKind::kGeneration, 1, {0, 1}), "it sent an invalid list of ranks"},
      {bytes_of(std::string(3u << 20, 'x')), "it sent bytes that are not a message"},
      {huge, "it sent bytes that are not a message"},
      {{}, "it closed the connection"},
  };
  for (const auto& [bytes, reason] : cases) {
    const std::string address = free_address();
    std::thread flooder([&] {
      HandRank hand(endpoint_of(address), hello_of(1, 2));
      CHECK(hand.meet());
      if (!bytes.empty()) {
        hand.send(bytes);
        CHECK((!hand.link().is_open() || wait_for_end(hand.link().socket(), 3s)));
      }
    });
    const Rendezvous all = Rendezvous::meet(options_of(address, 0, 2));
    const auto end = Clock::now() + 3s;
    while (!all.states()[0].gone && Clock::now() < end) std::this_thread::sleep_for(1ms);
    CHECK(all.states()[0].gone);
    CHECK(all.states()[0].reason.find(reason) == 0);
    if (reason != "it is too many calls ahead") {
      CHECK(outcome_of([&] {
              all.all_gather({}, 1s);
            }).says(ErrorCode::kCommunication, "rank 1 of 2 has gone"));
    }
    flooder.join();
  }
}

TEST_CASE("a rank that speaks of the next generation without the others is believed or left") {
  struct Case {
    exchange::FrameKind kind;
    std::vector<int> list;
    std::vector<int> members;  // the ranks with which rank 0 continues; empty: it cannot continue
  };
  const Case cases[] = {
      {exchange::FrameKind::kGeneration, {0, 1}, {0, 1}},
      {exchange::FrameKind::kGeneration, {0}, {0}},
      {exchange::FrameKind::kGeneration, {1}, {}},
      {exchange::FrameKind::kGeneration, {}, {}},
      {exchange::FrameKind::kSurvivors, {0, 1}, {0, 1}},
      {exchange::FrameKind::kSurvivors, {1}, {}},
      {exchange::FrameKind::kSurvivors, {}, {}},
  };
  for (const Case& one : cases) {
    const std::string address = free_address();
    std::atomic<bool> done = false;
    std::thread hostile([&] {
      HandRank hand(endpoint_of(address), hello_of(1, 2));
      CHECK(hand.meet());
      hand.send(exchange::encode(one.kind, 2, exchange::encode_list(one.list)));
      while (!done) std::this_thread::sleep_for(1ms);
    });
    {
      const Rendezvous all = Rendezvous::meet(options_of(address, 0, 2));
      const auto end = Clock::now() + 3s;
      while (!all.states()[0].gone && Clock::now() < end) std::this_thread::sleep_for(1ms);
      CHECK(all.states()[0].gone);
      std::vector<int> members;
      const Outcome outcome = outcome_of([&] {
        const Rendezvous next = all.regroup({.without = {}, .deadline = 2s});
        members = next.members();
        CHECK(next.generation() == 2);
        // If the hostile rank sends nothing more, it is late.
        const Gathered got = next.gather({}, 50ms);
        CHECK(got.late.size() == next.members().size() - 1);
      });
      CHECK(members == one.members);
      if (one.members.empty()) {
        CHECK(outcome.says(ErrorCode::kCommunication, "rank 1 of 2 leaves this rank out"));
      } else {
        CHECK(outcome.text == "");
      }
      CHECK(outcome.took < kSoon);
    }
    done = true;
    hostile.join();
  }
}

// --- Processes that die.

TEST_CASE(
    "of processes that meet, one is killed: the others name it and go on, also without rank 0") {
  for (const int victim : {0, 2}) {
    CAPTURE(victim);
    test::ScratchFolder folder;
    const std::string address = "file:" + (folder / "meeting");
    std::vector<pid_t> children;
    for (int rank = 0; rank < 4; ++rank) {
      children.push_back(start([&, rank] {
        const Rendezvous all = Rendezvous::meet(options_of(address, rank, 4));
        all.all_gather(bytes_of("here"), 5s);
        if (rank == victim) {
          kill(getpid(), SIGKILL);
          return 1;
        }
        const auto first = outcome_of([&] { all.all_gather({}, 9s); });
        if (!first.says(ErrorCode::kCommunication, fmt::format("rank {} of 4 has gone", victim))) {
          return 2;
        }
        if (first.took > kSoon) return 3;
        int gone = 0;
        for (const RankState& state : all.states()) gone += state.gone && state.rank == victim;
        if (gone != 1) return 4;
        for (int call = 0; call < 5; ++call) {
          const Gathered got = all.gather(bytes_of(fmt::format("{} {}", rank, call)), 5s);
          if (got.gone != std::vector<int>{victim} || !got.late.empty()) return 5;
          for (int other = 0; other < 4; ++other) {
            const std::string expected = other == victim ? "" : fmt::format("{} {}", other, call);
            if (text_of(got.bytes[static_cast<std::size_t>(other)]) != expected) return 6;
          }
        }
        return 0;
      }));
    }
    for (int rank = 0; rank < 4; ++rank) {
      CHECK(end_of(children[static_cast<std::size_t>(rank)]) == (rank == victim ? -1 : 0));
    }
  }
}

TEST_CASE("processes that are killed before and while the ranks meet keep nobody for ever") {
  const std::string address = free_address();
  const pid_t victim = start([&] {
    Rendezvous::meet(options_of(address, 2, 4, 5s));
    return 0;
  });
  std::vector<pid_t> children;
  for (const int rank : {0, 1}) {
    children.push_back(start([&, rank] {
      const auto outcome =
          outcome_of([&] { Rendezvous::meet(options_of(address, rank, 4, 800ms)); });
      const bool right =
          outcome.says(ErrorCode::kCommunication, "ranks 2 and 3 of 4 have not come within 800 ms");
      return right && outcome.took < kSoon ? 0 : 1;
    }));
  }
  std::this_thread::sleep_for(300ms);
  kill(victim, SIGKILL);
  CHECK(end_of(victim) == -1);
  for (const pid_t child : children) CHECK(end_of(child) == 0);
}

TEST_CASE("a process that is stopped is late, and posts to it neither wait nor pile up") {
  test::ScratchFolder folder;
  const std::string address = "file:" + (folder / "meeting");
  const pid_t stopped = start([&] {
    const Rendezvous all = Rendezvous::meet(options_of(address, 1, 2));
    all.all_gather({}, 5s);
    raise(SIGSTOP);
    const auto end = Clock::now() + 3s;
    while (Clock::now() < end && all.states()[0].position.run != 50000) {
      std::this_thread::sleep_for(1ms);
    }
    return all.states()[0].position.run == 50000 ? 0 : 1;
  });
  {
    const Rendezvous all = Rendezvous::meet(options_of(address, 0, 2));
    all.all_gather({}, 5s);
    int status = 0;
    CHECK(waitpid(stopped, &status, WUNTRACED) == stopped);
    REQUIRE(WIFSTOPPED(status));
    const auto begin = Clock::now();
    for (int i = 1; i <= 50000; ++i) all.post({0, i, 0});
    CHECK(Clock::now() - begin < 2s);
    CHECK(all.gather({}, 50ms).late == std::vector<int>{1});
    CHECK(!all.states()[0].gone);
    kill(stopped, SIGCONT);
    CHECK(end_of(stopped) == 0);
  }
}

}  // namespace
}  // namespace annulus
