// annulus run --ranks env: a rank is stopped or killed at a random moment between its start and its
// end. The other ranks must end within the deadline and name it.
//   test_program --test-case="*stopped*" --kills 200    that number of ranks; by default a few
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <string>
#include <thread>
#include <vector>

#include "base/random.h"
#include "program/run_program.h"
#include "support/options.h"

extern char** environ;

namespace {

using namespace annulus;
using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr int kMembers = 3;
constexpr milliseconds kLongestWait(2000);
constexpr milliseconds kMore(1000);  // additional time of the waiting ranks beyond the deadline

milliseconds since(Clock::time_point begin) {
  return std::chrono::duration_cast<milliseconds>(Clock::now() - begin);
}

// The processes of a ring's ranks, started as by a launcher.
class Launched {
 public:
  Launched() : begin_(Clock::now()) {
    for (int rank = 0; rank < kMembers; ++rank) start(rank);
  }
  ~Launched() {
    for (const pid_t process : processes_) {
      if (process == 0) continue;
      kill(process, SIGKILL);
      waitpid(process, nullptr, 0);
    }
  }
  Launched(const Launched&) = delete;
  Launched& operator=(const Launched&) = delete;

  Clock::time_point begin() const { return begin_; }
  void signal(int rank, int number) const { kill(at(rank), number); }
  // Waits for all ranks except `but`, or for all with -1. Returns false if some have not ended in
  // time.
  bool wait(int but, Clock::time_point end) {
    while (true) {
      bool all = true;
      for (int rank = 0; rank < kMembers; ++rank) {
        pid_t& process = at(rank);
        if (rank == but || process == 0) continue;
        int status = 0;
        if (waitpid(process, &status, WNOHANG) != process) {
          all = false;
          continue;
        }
        process = 0;
        codes[static_cast<std::size_t>(rank)] = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
      }
      if (all || Clock::now() >= end) return all;
      std::this_thread::sleep_for(milliseconds(1));
    }
  }
  std::string said(int rank) const { return test::read(file(rank)); }

  std::array<int, kMembers> codes{};

 private:
  std::string file(int rank) const { return folder_ / ("err" + std::to_string(rank)); }
  pid_t& at(int rank) { return processes_[static_cast<std::size_t>(rank)]; }
  pid_t at(int rank) const { return processes_[static_cast<std::size_t>(rank)]; }

  void start(int rank) {
    const std::string device = test::device_name();
    const std::string place = "file:" + (folder_ / "meeting");
    const std::string deadline = std::to_string(kLongestWait.count());
    std::vector<std::string> words = {
        ANNULUS_PROGRAM, "run",     "--no-check", "--heads",      "2",        "--seq",   "300",
        "--dim",         "64",      "--pattern",  "causal",       "--repeat", "3",       "--device",
        device,          "--ranks", "env",        "--rendezvous", place,      "--tuned", "none",
        "--deadline",    deadline};
    std::vector<std::string> set = {"PMI_RANK=" + std::to_string(rank),
                                    "PMI_SIZE=" + std::to_string(kMembers),
                                    "MPI_LOCALRANKID=" + std::to_string(rank)};
    std::vector<char*> arguments, variables;
    for (std::string& word : words) arguments.push_back(word.data());
    for (char** one = environ; *one != nullptr; ++one) variables.push_back(*one);
    for (std::string& one : set) variables.push_back(one.data());
    arguments.push_back(nullptr);
    variables.push_back(nullptr);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, file(rank).c_str(),
                                     O_WRONLY | O_CREAT | O_TRUNC, 0600);
    REQUIRE(posix_spawn(&at(rank), ANNULUS_PROGRAM, &actions, nullptr, arguments.data(),
                        variables.data()) == 0);
    posix_spawn_file_actions_destroy(&actions);
  }

  const Clock::time_point begin_;
  const test::ScratchFolder folder_;
  std::array<pid_t, kMembers> processes_{};
};

// Whether a text names the rank, as in "rank 2 of 3" or "ranks 0 and 2 of 3", apart from the text's
// author.
bool names(const std::string& text, int rank) {
  const std::string number = std::to_string(rank);
  return std::ranges::any_of(
      std::array{"rank " + number + " of", "reached rank " + number + " within",
                 "ranks " + number + " and", "and " + number + " of"},
      [&](const std::string& part) { return text.find(part) != std::string::npos; });
}

TEST_CASE("a rank that is stopped or killed at any moment keeps nobody beyond the deadline") {
  if (!test::on_simulator()) return;
  milliseconds whole{};
  for (int i = 0; i < 2; ++i) {  // the first run compiles
    Launched ring;
    REQUIRE(ring.wait(-1, ring.begin() + std::chrono::seconds(120)));
    for (int rank = 0; rank < kMembers; ++rank) {
      CHECK_MESSAGE(ring.codes[static_cast<std::size_t>(rank)] == 0, ring.said(rank));
    }
    whole = since(ring.begin());
  }
  const int kills = test::options().kills > 0 ? test::options().kills : 4;
  int missed = 0;
  milliseconds longest{};
  base::Random random(test::seed_of(71));
  for (int i = 0; i < kills; ++i) {
    const int victim = static_cast<int>(random.below(kMembers));
    const bool stops = random.below(4) > 0;
    const milliseconds moment(random.below(static_cast<std::uint32_t>(whole.count())));
    CAPTURE(i);
    CAPTURE(victim);
    CAPTURE(stops);
    CAPTURE(moment.count());
    Launched ring;
    std::this_thread::sleep_until(ring.begin() + moment);
    ring.signal(victim, stops ? SIGSTOP : SIGKILL);
    const Clock::time_point stopped = Clock::now();
    // The other ranks' own work takes no longer than a whole run.
    CHECK(ring.wait(victim, stopped + kLongestWait + kMore + whole));
    longest = std::max(longest, since(stopped));
    for (int rank = 0; rank < kMembers; ++rank) {
      if (rank == victim) continue;
      const int code = ring.codes[static_cast<std::size_t>(rank)];
      const bool is_right = code == 0 || (code == 4 && names(ring.said(rank), victim));
      CHECK_MESSAGE(is_right, "rank " << rank << " ended with " << code << ": " << ring.said(rank));
      missed += code == 0 ? 1 : 0;
    }
  }
  std::printf(
      "%d ranks stopped or killed in runs of %lld ms: the others ended within %lld ms, %d "
      "of %d of them with an answer\n",
      kills, static_cast<long long>(whole.count()), static_cast<long long>(longest.count()), missed,
      kills * (kMembers - 1));
}

}  // namespace
