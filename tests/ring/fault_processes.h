#ifndef ANNULUS_TESTS_RING_FAULT_PROCESSES_H_
#define ANNULUS_TESTS_RING_FAULT_PROCESSES_H_

// Rings of fault_rank processes, and the lines that their ranks write.

#include <doctest/doctest.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "ring/faults.h"

extern char** environ;

namespace annulus::test {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

// The hashes of all ranks of a new ring.
inline const std::vector<std::uint64_t>& expected(int ranks) {
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

// A line that a rank has written. `rest` is the text after the place.
struct Line {
  std::string kind, rest;
  std::int64_t generation = 0;
  int ranks = 0, rank = 0;
  int first = 0;  // its rank in the first generation
  Clock::time_point when;
};

// The ranks of a process, and the place where it runs.
struct ProcessOptions {
  std::string address;  // the address of the rendezvous
  int first = 0, count = 1, ranks = 1;
  milliseconds deadline{300};
  std::string host;   // NCCL_HOSTID; empty: the machine's host id
  std::string netns;  // the network namespace; empty: the test's
};

class Process {
 public:
  explicit Process(const ProcessOptions& options) {
    int ends[2], commands[2];
    REQUIRE(pipe2(ends, O_CLOEXEC) == 0);
    REQUIRE(pipe2(commands, O_CLOEXEC) == 0);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&actions, commands[0], STDIN_FILENO);
    const std::string program =
        std::filesystem::read_symlink("/proc/self/exe").parent_path() / "fault_rank";
    std::vector<std::string> words;
    if (!options.netns.empty()) words = {"ip", "netns", "exec", options.netns};
    for (const std::string& word :
         {program, options.address, std::to_string(options.first), std::to_string(options.ranks),
          std::to_string(options.deadline.count()), std::to_string(options.count)}) {
      words.push_back(word);
    }
    std::vector<std::string> variables;
    if (!options.host.empty()) variables.push_back("NCCL_HOSTID=" + options.host);
    const auto pointers_to = [](std::vector<std::string>& texts) {
      std::vector<char*> pointers;
      for (std::string& text : texts) pointers.push_back(text.data());
      return pointers;
    };
    std::vector<char*> arguments = pointers_to(words), environment = pointers_to(variables);
    arguments.push_back(nullptr);
    for (char** variable = environ; *variable != nullptr; ++variable) {
      environment.push_back(*variable);
    }
    environment.push_back(nullptr);
    REQUIRE(posix_spawnp(&id_, arguments[0], &actions, nullptr, arguments.data(),
                         environment.data()) == 0);
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
    close(commands[0]);
    out_ = ends[0];
    in_ = commands[1];
    fcntl(out_, F_SETFL, O_NONBLOCK);
  }
  ~Process() {
    if (id_ != 0) {
      kill(id_, SIGKILL);
      waitpid(id_, nullptr, 0);
    }
    close(out_);
    close(in_);
  }
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  int out() const { return out_; }
  void signal(int number) const { kill(id_, number); }
  // Stops the process, and returns when all threads have stopped.
  void stop() const {
    kill(id_, SIGSTOP);
    waitpid(id_, nullptr, WUNTRACED);
  }
  // Writes a line to the input of fault_rank.
  void order(const std::string& text) const {
    const std::string line = text + "\n";
    static_cast<void>(!::write(in_, line.data(), line.size()));
  }
  // Reads the available output.
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
      words >> line.kind >> line.generation >> line.ranks >> line.rank >> line.first;
      std::getline(words, line.rest);
      line.when = Clock::now();
      lines.push_back(line);
      text_.erase(0, end + 1);
    }
  }
  // The first line of that kind and generation from the rank with this first number.
  const Line* find(const std::string& kind, std::int64_t generation, int first) const {
    for (const Line& line : lines) {
      if (line.kind == kind && line.generation == generation && line.first == first) return &line;
    }
    return nullptr;
  }
  // The exit code of the process, -1 if a signal ended it, or -2 if it has not ended in time.
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
  int out_ = -1, in_ = -1;
  std::string text_;
};

class Ring {
 public:
  explicit Ring(const std::vector<ProcessOptions>& processes) {
    for (const ProcessOptions& options : processes) {
      for (int first = options.first; first < options.first + options.count; ++first) {
        process_of_.push_back(static_cast<int>(processes_.size()));
        members_.push_back(first);
      }
      processes_.push_back(std::make_unique<Process>(options));
    }
  }
  int ranks() const { return static_cast<int>(members_.size()); }
  // first(): the rank in the first generation of the rank that now has this number.
  // process_index(): the process of that rank.
  int first(int number) const { return members_[static_cast<std::size_t>(number)]; }
  int process_index(int number) const {
    return process_of_[static_cast<std::size_t>(first(number))];
  }
  Process& member(int number) {
    return *processes_[static_cast<std::size_t>(process_index(number))];
  }
  const Line* find(const std::string& kind, std::int64_t generation, int number) {
    return member(number).find(kind, generation, first(number));
  }

  // Reads the output of all processes until the condition holds.
  bool read_until(const std::function<bool()>& condition, milliseconds within) {
    const Clock::time_point last = Clock::now() + within;
    while (true) {
      std::vector<pollfd> polled;
      for (const auto& process : processes_) polled.push_back({process->out(), POLLIN, 0});
      poll(polled.data(), polled.size(), 5);
      for (const auto& process : processes_) process->read();
      if (condition()) return true;
      if (Clock::now() >= last) return false;
    }
  }
  bool all_say(const std::string& kind, std::int64_t generation, milliseconds within) {
    return read_until(
        [&] {
          for (int number = 0; number < ranks(); ++number) {
            if (find(kind, generation, number) == nullptr) return false;
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
  std::vector<std::unique_ptr<Process>> processes_;
  std::vector<int> process_of_;  // by first number
  std::vector<int> members_;     // the first number of each current number
};

// Compares the "good" lines with a new ring. Returns the number of lines.
inline std::int64_t check_lines(const Ring& ring) {
  std::int64_t good = 0;
  for (const auto& process : ring.processes()) {
    for (const Line& line : process->lines) {
      CHECK_MESSAGE(line.kind != "kept", "generation " << line.generation << ", rank " << line.rank
                                                       << " of " << line.ranks << ": "
                                                       << line.rest);
      if (line.kind != "good") continue;
      ++good;
      const std::uint64_t hash = expected(line.ranks)[static_cast<std::size_t>(line.rank)];
      CHECK_MESSAGE(std::stoull(line.rest) == hash, "rank " << line.rank << " of " << line.ranks
                                                            << " of generation "
                                                            << line.generation);
    }
  }
  return good;
}

}  // namespace annulus::test

#endif  // ANNULUS_TESTS_RING_FAULT_PROCESSES_H_
