// Processes of a ring are killed, stopped, made late and refused by NCCL, at any moment, one after
// another until one is left. Each time the others return in time, all name the right one, and those
// that are left compute the bits of a fresh ring of their number.
//   test_ring_faults --kills 1000    so many ranks are lost; a few in the ordinary run

#include <doctest/doctest.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <map>
#include <optional>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "ring/faults.h"
#include "support/faulty_files.h"
#include "support/options.h"

extern char** environ;

namespace annulus {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;
using test::FaultMemory;
using test::FaultProblem;

constexpr milliseconds kDeadline(300);
constexpr int kMostRanks = 6;

// The hashes of all ranks of a fresh ring.
const std::vector<std::uint64_t>& expected(int ranks) {
  static std::map<int, std::vector<std::uint64_t>> known;
  std::vector<std::uint64_t>& hashes = known[ranks];
  if (!hashes.empty()) return hashes;
  const FaultProblem problem(ranks);
  std::vector<Device> devices;
  for (int rank = 0; rank < ranks; ++rank) {
    devices.push_back(Device::open("sim:sm_80:" + std::to_string(rank)));
  }
  const RingPlan plan = plan_ring(devices, problem.problem, problem.shards);
  std::vector<FaultMemory> memories;
  std::vector<RingCall> calls;
  for (int rank = 0; rank < ranks; ++rank) {
    const Device& device = devices[static_cast<std::size_t>(rank)];
    memories.emplace_back(device, problem, rank, plan.workspace_bytes(rank));
    calls.push_back(memories.back().call);
  }
  plan.run(calls);
  for (const Device& device : devices) device.synchronize();
  for (int rank = 0; rank < ranks; ++rank) {
    const auto at = static_cast<std::size_t>(rank);
    hashes.push_back(memories[at].take_hash(devices[at]));
  }
  return hashes;
}

// What a rank has said; words are those behind the place.
struct Line {
  std::string kind, rest;
  std::int64_t generation = 0;
  int ranks = 0, rank = 0;
  Clock::time_point when;
};

class Process {
 public:
  Process(const std::string& file, int rank, int ranks) {
    int ends[2];
    REQUIRE(pipe2(ends, O_CLOEXEC) == 0);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
    const std::string program =
        std::filesystem::read_symlink("/proc/self/exe").parent_path() / "fault_rank";
    std::vector<std::string> words = {program, file, std::to_string(rank), std::to_string(ranks),
                                      std::to_string(kDeadline.count())};
    std::vector<char*> pointers;
    for (std::string& word : words) pointers.push_back(word.data());
    pointers.push_back(nullptr);
    REQUIRE(posix_spawn(&id_, program.c_str(), &actions, nullptr, pointers.data(), environ) == 0);
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
    out_ = ends[0];
    fcntl(out_, F_SETFL, O_NONBLOCK);
  }
  ~Process() {
    if (id_ != 0) {
      kill(id_, SIGKILL);
      waitpid(id_, nullptr, 0);
    }
    close(out_);
  }
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  int out() const { return out_; }
  void signal(int number) const { kill(id_, number); }
  // Reads what is there.
  void read() {
    char chunk[4096];
    while (true) {
      const ssize_t count = ::read(out_, chunk, sizeof(chunk));
      if (count <= 0) break;
      text_.append(chunk, static_cast<std::size_t>(count));
    }
    for (std::size_t end = text_.find('\n'); end != std::string::npos; end = text_.find('\n')) {
      Line line;
      std::istringstream words(text_.substr(0, end));
      words >> line.kind >> line.generation >> line.ranks >> line.rank;
      std::getline(words, line.rest);
      line.when = Clock::now();
      lines.push_back(line);
      text_.erase(0, end + 1);
    }
  }
  // The first line of that kind and generation.
  const Line* find(const std::string& kind, std::int64_t generation) const {
    for (const Line& line : lines) {
      if (line.kind == kind && line.generation == generation) return &line;
    }
    return nullptr;
  }
  // What the process ended with; -1 for a signal, -2 where it has not ended in time.
  int end(milliseconds within) {
    const Clock::time_point last = Clock::now() + within;
    int status = 0;
    while (waitpid(id_, &status, WNOHANG) == 0) {
      if (Clock::now() >= last) return -2;
      std::this_thread::sleep_for(milliseconds(2));
    }
    id_ = 0;
    read();
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

  std::vector<Line> lines;

 private:
  pid_t id_ = 0;
  int out_ = -1;
  std::string text_;
};

// What is done to a rank.
struct Fault {
  const char* name;
  int signal;
  bool while_planning;  // the others notice it there too before planning would be too long
  bool ends;            // the process is dead at once
};
constexpr Fault kFaults[] = {
    {"killed", SIGKILL, true, true},
    {"stopped", SIGSTOP, false, false},
    {"slow", SIGUSR1, false, false},
    {"refused by NCCL", SIGUSR2, false, false},
};

class Ring {
 public:
  Ring(int ranks, const std::string& file) {
    for (int rank = 0; rank < ranks; ++rank) {
      processes_.push_back(std::make_unique<Process>(file, rank, ranks));
      members_.push_back(rank);
    }
  }
  int ranks() const { return static_cast<int>(members_.size()); }
  Process& member(int number) {
    return *processes_[static_cast<std::size_t>(members_[static_cast<std::size_t>(number)])];
  }

  // Reads what all say until the condition holds.
  bool read_until(const std::function<bool()>& condition, milliseconds within) {
    const Clock::time_point last = Clock::now() + within;
    while (true) {
      std::vector<pollfd> polled;
      for (const int member : members_) {
        polled.push_back({processes_[static_cast<std::size_t>(member)]->out(), POLLIN, 0});
      }
      poll(polled.data(), polled.size(), 5);
      for (const int member : members_) processes_[static_cast<std::size_t>(member)]->read();
      if (condition()) return true;
      if (Clock::now() >= last) return false;
    }
  }
  bool all_say(const std::string& kind, std::int64_t generation, milliseconds within) {
    return read_until(
        [&] {
          for (int number = 0; number < ranks(); ++number) {
            if (member(number).find(kind, generation) == nullptr) return false;
          }
          return true;
        },
        within);
  }
  void tell_last() {
    for (int number = 0; number < ranks(); ++number) {
      const Process& one = member(number);
      MESSAGE("rank " << number << " said last: "
                      << (one.lines.empty() ? "nothing"
                                            : one.lines.back().kind + one.lines.back().rest));
    }
  }
  void lose(int number) { members_.erase(members_.begin() + number); }
  const std::vector<std::unique_ptr<Process>>& processes() const { return processes_; }

 private:
  std::vector<std::unique_ptr<Process>> processes_;  // by their first number
  std::vector<int> members_;
};

// What the campaign has seen.
struct Seen {
  int lost = 0;
  std::map<std::string, int> by_fault;
  milliseconds longest_notice{}, longest_recovery{};
  std::int64_t good_runs = 0;
};

void check_lines(const Ring& ring, Seen* seen) {
  for (const auto& process : ring.processes()) {
    for (const Line& line : process->lines) {
      CHECK_MESSAGE(line.kind != "kept", "generation " << line.generation << ", rank " << line.rank
                                                       << " of " << line.ranks << ": "
                                                       << line.rest);
      if (line.kind != "good") continue;
      ++seen->good_runs;
      const std::uint64_t hash = expected(line.ranks)[static_cast<std::size_t>(line.rank)];
      CHECK_MESSAGE(std::stoull(line.rest) == hash, "rank " << line.rank << " of " << line.ranks
                                                            << " of generation "
                                                            << line.generation);
    }
  }
}

// One rank is lost; false: something is not as it should be, and the ring is of no further use.
bool lose_one(Ring& ring, std::int64_t generation, base::Random& random, Seen* seen) {
  const int ranks = ring.ranks();
  const int victim = static_cast<int>(random.below(static_cast<std::uint32_t>(ranks)));
  const bool planning = random.below(5) == 0;
  std::vector<Fault> faults;
  for (const Fault& fault : kFaults) {
    if (fault.while_planning || !planning) faults.push_back(fault);
  }
  // Half of all ranks are killed.
  const bool killed = planning || random.below(2) == 0;
  const Fault fault =
      killed ? faults[0] : faults[random.below(static_cast<std::uint32_t>(faults.size()))];
  const auto delay = std::chrono::microseconds(random.below(planning ? 120000 : 40000));
  INFO("generation " << generation << ", rank " << victim << " of " << ranks << " "
                     << std::string(fault.name) << (planning ? " while planning" : "") << " after "
                     << delay.count() << " us");
  if (!ring.all_say(planning ? "met" : "good", generation, milliseconds(20000))) {
    ring.tell_last();
    FAIL_CHECK("not all ranks have met, or come to their first run");
    return false;
  }
  std::this_thread::sleep_for(delay);
  Process& process = ring.member(victim);
  const Clock::time_point begin = Clock::now();
  process.signal(fault.signal);
  ring.lose(victim);
  const std::string name = "rank " + std::to_string(victim) + " of " + std::to_string(ranks);
  if (!ring.all_say("lost", generation, 20 * kDeadline + milliseconds(4000))) {
    ring.tell_last();
    FAIL_CHECK("not all ranks have noticed");
    return false;
  }
  bool well = true;
  Clock::time_point noticed = begin;
  for (int number = 0; number < ring.ranks(); ++number) {
    const Line& line = *ring.member(number).find("lost", generation);
    noticed = std::max(noticed, line.when);
    std::istringstream words(line.rest);
    std::string took, blamed;
    words >> took >> blamed;
    const bool named = blamed == std::to_string(victim) ||
                       (blamed == "-" && line.rest.find(name) != std::string::npos);
    CHECK_MESSAGE(named, line.rest);
    CHECK_MESSAGE(line.rest.find(name) != std::string::npos, line.rest);
    well = well && named;
  }
  // A rank that is late notices it itself only then.
  const milliseconds sleep = fault.signal == SIGUSR1 ? kDeadline : milliseconds(0);
  const auto notice = std::chrono::duration_cast<milliseconds>(noticed - begin) - sleep;
  seen->longest_notice = std::max(seen->longest_notice, notice);
  CHECK(notice <= kDeadline + milliseconds(1000));
  if (ring.ranks() > 1) {
    const bool recovered = ring.all_say("good", generation + 1, milliseconds(20000));
    CHECK(recovered);
    if (!recovered) return false;
    seen->longest_recovery = std::max(
        seen->longest_recovery, std::chrono::duration_cast<milliseconds>(Clock::now() - begin));
  } else {
    CHECK(ring.member(0).end(milliseconds(10000)) == 0);
  }
  // A rank that lives finds that it is out.
  if (fault.signal == SIGSTOP) process.signal(SIGCONT);
  const int code = process.end(milliseconds(20000));
  CHECK(code == (fault.ends ? -1 : 0));
  if (!fault.ends) CHECK(process.find("out", generation) != nullptr);
  ++seen->lost;
  ++seen->by_fault[fault.name];
  return well;
}

TEST_CASE("ranks are lost one after another, and the others go on with the bits of a fresh ring") {
  const int kills = test::options().kills > 0 ? test::options().kills : 9;
  Seen seen;
  for (std::uint64_t index = 0; seen.lost < kills; ++index) {
    base::Random random(test::seed_of(40) * 1000 + index);
    const int ranks = 2 + static_cast<int>((index + 2) % (kMostRanks - 1));
    CAPTURE(index);
    test::ScratchFolder folder;
    Ring ring(ranks, folder / "meeting");
    bool well = true;
    for (std::int64_t generation = 1; well && ring.ranks() > 1; ++generation) {
      well = lose_one(ring, generation, random, &seen);
    }
    check_lines(ring, &seen);
    if (!well) break;
  }
  std::string text;
  for (const auto& [name, count] : seen.by_fault) text += name + " " + std::to_string(count) + ", ";
  std::printf(
      "%d ranks lost (%s%lld good runs); noticed within %lld ms, the next answers of the "
      "others within %lld ms\n",
      seen.lost, text.c_str(), static_cast<long long>(seen.good_runs),
      static_cast<long long>(seen.longest_notice.count()),
      static_cast<long long>(seen.longest_recovery.count()));
  CHECK(seen.good_runs > 0);
}

}  // namespace
}  // namespace annulus
