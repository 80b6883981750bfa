// The ranks RANK to RANK + COUNT - 1 of a ring, in a separate process with one thread for each
// rank. They compute again and again, report each run, and continue with the remaining ranks if a
// rank is lost.
//
//   fault_rank ADDRESS RANK RANKS DEADLINE_MS COUNT
//
// Each rank writes a line for each of these events. G is the number of the generation, P its number
// of ranks, R the current rank, and N the rank in the first generation:
//
//   met G P R N
//   planned G P R N
//   good G P R N HASH            a run with all messages; HASH is the hash of O and LSE
//   lost G P R N T BLAMED TEXT   a generation ended T ms after the call began that could not end
//   out G P R N TEXT             the others have continued without this rank
//   kept G P R N WHAT            something of the ended generation still exists
//
// SIGUSR1 makes the ranks late before their next run. SIGUSR2 makes a call of their NCCL fail. The
// lines of the input are orders:
//
//   cut A B    ends NCCL's connection between rank A of this process and rank B of another one
//   off        ends all connections of this process to others

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <optional>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "annulus/simulator.h"
#include "annulus/types.h"
#include "ring/faults.h"
#include "support/nccl_options.h"

namespace annulus::test {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

volatile sig_atomic_t late = 0, refused = 0;

void say(const std::string& line) {
  const std::string whole = line + "\n";
  static_cast<void>(!::write(STDOUT_FILENO, whole.data(), whole.size()));
}

struct Left {
  std::size_t files = 0, threads = 0;
};
Left what_is_left() {
  const auto entries_of = [](const char* folder) {
    return static_cast<std::size_t>(std::ranges::distance(
        std::filesystem::directory_iterator(folder), std::filesystem::directory_iterator()));
  };
  return {entries_of("/proc/self/fd"), entries_of("/proc/self/task")};
}

// Makes one of the next calls of NCCL in this process fail.
void refuse_a_call() {
  annulus_simulator_nccl_options options = ANNULUS_SIMULATOR_NCCL_OPTIONS_INIT;
  std::strcpy(options.fail_function, "ncclGroupEnd");
  options.fail_after = 2;
  options.fail_code = 2;
  set_nccl(options);
}

struct Place {
  std::int64_t generation = 0;
  int ranks = 0;
  int rank = 0;
  int first = 0;
  std::string text() const {
    return std::to_string(generation) + " " + std::to_string(ranks) + " " + std::to_string(rank) +
           " " + std::to_string(first);
  }
};

// Plans and runs until something fails. Returns the blamed ranks.
std::vector<int> compute(const Rendezvous& meeting, const Place& place, milliseconds deadline,
                         bool* planned) {
  const Device device = Device::open("sim:sm_80:" + std::to_string(place.rank));
  std::optional<Communicator> communicator;
  Clock::time_point begin = Clock::now();
  try {
    communicator.emplace(Communicator::open(
        device, meeting, {.deadline = deadline, .planning = milliseconds(20000)}));
    const FaultProblem problem(place.ranks);
    const RingRankPlan plan = plan_ring(device, *communicator, problem.problem, problem.shards);
    FaultMemory memory(device, problem, place.rank, plan.workspace_bytes());
    say("planned " + place.text());
    *planned = true;
    while (true) {
      if (late != 0) std::this_thread::sleep_for(4 * deadline);
      if (refused != 0) refuse_a_call();
      late = 0;
      refused = 0;
      begin = Clock::now();
      const std::int64_t run = plan.run(memory.call);
      device.synchronize();
      if (communicator->wait(run) != RunState::kGood) break;
      say("good " + place.text() + " " + std::to_string(memory.take_hash(device)));
    }
    throw Error(ErrorCode::kCommunication, communicator->reason());
  } catch (const Error& error) {
    const auto took = std::chrono::duration_cast<milliseconds>(Clock::now() - begin).count();
    const std::vector<int> blamed = communicator ? communicator->blamed() : std::vector<int>();
    std::string who;
    for (const int one : blamed) who += (who.empty() ? "" : ",") + std::to_string(one);
    say("lost " + place.text() + " " + std::to_string(took) + " " + (who.empty() ? "-" : who) +
        " " + error.what());
    return blamed;
  }
}

// Both ends of a connected TCP socket as text, or empty texts for any other descriptor.
struct Ends {
  std::string own, peer;
};
Ends ends_of(int descriptor) {
  const auto text = [&](auto name) {
    sockaddr_in address{};
    socklen_t size = sizeof(address);
    const bool good = name(descriptor, reinterpret_cast<sockaddr*>(&address), &size) == 0 &&
                      address.sin_family == AF_INET && size == sizeof(address);
    return good ? std::string(inet_ntoa(address.sin_addr)) + ":" +
                      std::to_string(ntohs(address.sin_port))
                : std::string();
  };
  return {text(getsockname), text(getpeername)};
}

bool is_stopped(pid_t process) {
  const int file = open(("/proc/" + std::to_string(process) + "/stat").c_str(), O_RDONLY);
  char text[256] = {};
  static_cast<void>(!read(file, text, sizeof(text) - 1));
  close(file);
  const char* const name_end = std::strrchr(text, ')');
  return name_end != nullptr && name_end[2] == 'T';
}

// Ends all connections to other processes, first the control channel's and then NCCL's. During that
// time no thread of this process runs, because it would inform the ranks that are still connected.
void cut_off() {
  constexpr int kMaxRanks = 8, kMaxDescriptors = 1024;
  std::vector<std::string> own;
  for (int one = 3; one < kMaxDescriptors; ++one) own.push_back(ends_of(one).own);
  std::vector<int> connections;
  for (int one = 3; one < kMaxDescriptors; ++one) {
    const std::string peer = ends_of(one).peer;
    if (!peer.empty() && std::ranges::find(own, peer) == own.end()) connections.push_back(one);
  }
  const pid_t process = getpid();
  const pid_t child = fork();
  if (child == 0) {
    kill(process, SIGSTOP);
    while (!is_stopped(process)) usleep(100);
    for (const int one : connections) shutdown(one, SHUT_RDWR);
    kill(process, SIGCONT);
    _exit(0);
  }
  waitpid(child, nullptr, 0);
  for (int rank = 0; rank < kMaxRanks; ++rank) cut_nccl(rank, -1);
}

void follow_orders() {
  for (std::string line; std::getline(std::cin, line);) {
    std::istringstream words(line);
    std::string verb;
    int rank = 0, peer = 0;
    words >> verb >> rank >> peer;
    if (verb == "cut") cut_nccl(rank, peer);
    if (verb == "off") cut_off();
  }
}

int run(const std::string& address, int rank, int ranks, milliseconds deadline, bool alone) {
  std::optional<Rendezvous> meeting = Rendezvous::meet(
      {.address = address, .rank = rank, .ranks = ranks, .token = "faults", .interface = ""});
  std::optional<Left> first;
  while (true) {
    const Place place = {meeting->generation(), meeting->ranks(), meeting->rank(), rank};
    say("met " + place.text());
    bool planned = false;
    const std::vector<int> blamed = compute(*meeting, place, deadline, &planned);
    // Everything of a generation is gone except its rendezvous. The first generation that planned
    // has loaded whatever the process keeps. Threads may take a moment to end.
    Left left = what_is_left();
    // Other ranks of the process have separate files and threads, which are not counted.
    for (int wait = 0; alone && wait < 400 && first &&
                       (left.files > first->files || left.threads > first->threads);
         ++wait) {
      std::this_thread::sleep_for(milliseconds(5));
      left = what_is_left();
    }
    if (!first && planned && alone) first = left;
    if (first && left.files > first->files) say("kept " + place.text() + " files");
    if (first && left.threads > first->threads) say("kept " + place.text() + " threads");
    try {
      meeting.emplace(
          meeting->regroup({.without = blamed, .at_least = 1, .deadline = milliseconds(6000)}));
    } catch (const Error& error) {
      say("out " + place.text() + " " + error.what());
      return 0;
    }
    if (meeting->ranks() == 1) return 0;
  }
}

}  // namespace
}  // namespace annulus::test

int main(int count, char** words) {
  if (count != 6) return 2;
  struct sigaction action = {};
  action.sa_flags = SA_RESTART;
  action.sa_handler = [](int) { annulus::test::late = 1; };
  sigaction(SIGUSR1, &action, nullptr);
  action.sa_handler = [](int) { annulus::test::refused = 1; };
  sigaction(SIGUSR2, &action, nullptr);
  std::thread(annulus::test::follow_orders).detach();
  const int first = std::atoi(words[2]), ranks = std::atoi(words[3]), own = std::atoi(words[5]);
  std::atomic<int> code = 0;
  std::vector<std::thread> threads;
  for (int rank = first; rank < first + own; ++rank) {
    threads.emplace_back([&, rank] {
      try {
        annulus::test::run(words[1], rank, ranks, std::chrono::milliseconds(std::atoi(words[4])),
                           own == 1);
      } catch (const std::exception& error) {
        std::fprintf(stderr, "rank %d ended with: %s\n", rank, error.what());
        code = 1;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::_Exit(code);  // a thread still waits for orders
}
