// One rank of a ring, in a process of its own, that computes over and over, tells what became of
// each run, and goes on with those that are left where a rank is lost.
//
//   fault_rank FILE RANK RANKS DEADLINE_MS
//
// It writes a line for each of these, with the number of the generation, of its ranks and of this
// one among them:
//
//   met G P R
//   planned G P R
//   good G P R HASH              a run whose messages have all come, and the hash of O and LSE
//   lost G P R T BLAMED TEXT     a generation has ended T ms after what it could not do had begun
//   out G P R TEXT               the others have gone on without this rank
//   kept G P R WHAT              something of the generation that ended is still there
//
// SIGUSR1 makes it late before its next run, SIGUSR2 lets a call of its NCCL fail.

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <optional>
#include <string>
#include <thread>

#include "annulus/error.h"
#include "annulus/simulator.h"
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

// Lets one of the next calls of NCCL in this process fail.
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
  std::string text() const {
    return std::to_string(generation) + " " + std::to_string(ranks) + " " + std::to_string(rank);
  }
};

// Plans and runs until something fails. Returns whom that is blamed on.
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

int run(const char* file, int rank, int ranks, milliseconds deadline) {
  std::optional<Rendezvous> meeting = Rendezvous::meet({.address = std::string("file:") + file,
                                                        .rank = rank,
                                                        .ranks = ranks,
                                                        .token = "faults",
                                                        .interface = ""});
  std::optional<Left> first;
  while (true) {
    const Place place = {meeting->generation(), meeting->ranks(), meeting->rank()};
    say("met " + place.text());
    bool planned = false;
    const std::vector<int> blamed = compute(*meeting, place, deadline, &planned);
    // Everything of a generation is gone but its rendezvous. The first that planned has loaded
    // whatever the process keeps.
    // Threads that were told to end may take a moment.
    Left left = what_is_left();
    for (int wait = 0;
         wait < 400 && first && (left.files > first->files || left.threads > first->threads);
         ++wait) {
      std::this_thread::sleep_for(milliseconds(5));
      left = what_is_left();
    }
    if (!first && planned) first = left;
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
  if (count != 5) return 2;
  struct sigaction action = {};
  action.sa_flags = SA_RESTART;
  action.sa_handler = [](int) { annulus::test::late = 1; };
  sigaction(SIGUSR1, &action, nullptr);
  action.sa_handler = [](int) { annulus::test::refused = 1; };
  sigaction(SIGUSR2, &action, nullptr);
  try {
    return annulus::test::run(words[1], std::atoi(words[2]), std::atoi(words[3]),
                              std::chrono::milliseconds(std::atoi(words[4])));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "a rank ended with: %s\n", error.what());
    return 1;
  }
}
