#include "program/ring_processes.h"

#include <fmt/format.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <thread>
#include <utility>

#include "annulus/communicator.h"
#include "base/fail.h"
#include "program/report.h"

extern char** environ;

namespace annulus::program {
namespace {

using Clock = std::chrono::steady_clock;

std::vector<std::string>& command_line() {
  static std::vector<std::string> words;
  return words;
}

// What a rank that was started is told.
struct Seat {
  int rank = 0;
  CommunicatorId id;
  std::string file;
};

std::string text_of(const Seat& seat) {
  std::string hex;
  for (const char byte : seat.id.bytes) {
    hex += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  }
  return fmt::format("{}:{}:{}", seat.rank, hex, seat.file);
}

Seat read_seat(const std::string& text) {
  Seat seat;
  const std::size_t first = text.find(':');
  const std::size_t second = first == std::string::npos ? first : text.find(':', first + 1);
  if (second == std::string::npos || second - first - 1 != 2 * sizeof(seat.id.bytes)) {
    base::fail(ErrorCode::kInvalidArgument, "--seat is for processes that --processes starts");
  }
  seat.rank = std::atoi(text.c_str());
  for (std::size_t i = 0; i < sizeof(seat.id.bytes); ++i) {
    const std::string digits = text.substr(first + 1 + 2 * i, 2);
    seat.id.bytes[i] = static_cast<char>(std::strtol(digits.c_str(), nullptr, 16));
  }
  seat.file = text.substr(second + 1);
  return seat;
}

// What a rank leaves besides O and LSE.
struct Left {
  std::int64_t peak_bytes = 0;
  std::int64_t launches = 0;
  double predicted_micros = 0, least_micros = 0, most_micros = 0;
};

// What a rank has computed.
struct Part {
  RingInfo info;
  Left left;
  HostTensor o;
  std::vector<float> lse;
  std::vector<double> millis;
};

// The device of a rank: of one kind of simulated device, or of the machine, that with its number.
Device device_of(const RunArguments& arguments, const std::string& first, int rank) {
  DeviceOptions options = device_options(arguments.device);
  const std::size_t end = first.rfind(':');
  const bool simulated = first.starts_with("sim:");
  const std::string kind =
      simulated && end == std::string_view("sim").size() ? first : first.substr(0, end);
  options.name = fmt::format("{}:{}", kind, rank);
  return Device::open(options);
}

// Until the stream has ended; at the deadline the communicator is given up.
void wait_for(const Device& device, const Stream& stream, const Communicator& communicator,
              int deadline) {
  const Clock::time_point end = Clock::now() + std::chrono::milliseconds(deadline);
  while (!has_ended(device, stream)) {
    if (deadline > 0 && Clock::now() >= end) {
      const std::string reason = fmt::format(
          "rank {} of {} waited {} ms for the rows of a run: a rank is late or has died",
          communicator.rank(), communicator.ranks(), deadline);
      communicator.give_up(reason);
      throw Error(ErrorCode::kCommunication, reason);
    }
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
}

Part run_rank(const Device& device, const Seat& seat, const RunArguments& arguments,
              const ProblemInput& input) {
  const Problem& problem = input.problem;
  const int ranks = arguments.ranks;
  const Communicator communicator =
      Communicator::open(device, seat.id, ranks, seat.rank,
                         {.deadline = std::chrono::milliseconds(arguments.deadline)});
  const ShardMap shards = ring_shards(arguments, problem, ranks);
  const RingRankPlan plan =
      plan_ring(device, communicator, problem, shards, ring_options(arguments));
  Part part;
  part.info = plan.info();
  const RingRankInfo& own = part.info.ranks[0];
  part.left = {own.workspace_bytes + own.device_bytes, own.launches, own.predicted_micros,
               own.least_micros, own.most_micros};
  RingCall call;
  RankMemory memory = upload(device, input, shards, static_cast<std::size_t>(seat.rank),
                             plan.workspace_bytes(), &call);
  for (int i = 0; i < arguments.repeat; ++i) {
    const Clock::time_point start = Clock::now();
    plan.run(call);
    wait_for(device, memory.stream, communicator, arguments.deadline);
    part.millis.push_back(std::chrono::duration<double, std::milli>(Clock::now() - start).count());
  }
  part.lse = fetch(device, &memory);
  part.o = std::move(memory.host_o);
  return part;
}

template <typename T>
void put(std::ofstream& to, const T* values, std::size_t count) {
  to.write(reinterpret_cast<const char*>(values), static_cast<std::streamsize>(count * sizeof(T)));
}
template <typename T>
void take(std::ifstream& from, T* values, std::size_t count) {
  from.read(reinterpret_cast<char*>(values), static_cast<std::streamsize>(count * sizeof(T)));
}

// The processes of the other ranks. Those that still run are ended with it. While this process
// waits for ranks, it cannot be told of one that has died: a thread watches them, and ends the
// program for the first that does not end well.
class Others {
 public:
  Others() {
    std::string name = (std::filesystem::temp_directory_path() / "annulus-ring-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) {
      base::fail(ErrorCode::kFile, "cannot make a folder below {}",
                 std::filesystem::temp_directory_path().string());
    }
    folder_ = name;
  }
  ~Others() {
    over_ = true;
    if (watcher_.joinable()) watcher_.join();
    end_all();
  }
  Others(const Others&) = delete;
  Others& operator=(const Others&) = delete;

  std::string file_of(int rank) const { return fmt::format("{}/rank-{}", folder_, rank); }

  void start(const Seat& seat) {
    std::vector<std::string> words = command_line();
    words.push_back("--seat=" + text_of(seat));
    std::vector<char*> pointers;
    for (std::string& word : words) pointers.push_back(word.data());
    pointers.push_back(nullptr);
    pid_t process = 0;
    const int code =
        posix_spawn(&process, "/proc/self/exe", nullptr, nullptr, pointers.data(), environ);
    if (code != 0) {
      base::fail(ErrorCode::kInternal, "cannot start a process for rank {}: {}", seat.rank,
                 std::strerror(code));
    }
    processes_.push_back(process);
  }
  // When all are started.
  void watch() {
    watcher_ = std::thread([this] { watch_all(); });
  }
  // Waits for all.
  void finish() {
    if (watcher_.joinable()) watcher_.join();
  }

 private:
  static constexpr auto kPoll = std::chrono::milliseconds(5);

  void watch_all() {
    std::size_t left = processes_.size();
    while (left > 0 && !over_) {
      for (std::size_t i = 0; i < processes_.size(); ++i) {
        int status = 0;
        if (processes_[i] == 0 || waitpid(processes_[i], &status, WNOHANG) != processes_[i]) {
          continue;
        }
        processes_[i] = 0;
        --left;
        if (WIFEXITED(status) && WEXITSTATUS(status) == 0) continue;
        // A rank that fails has said why.
        const std::string text = WIFSIGNALED(status)
                                     ? fmt::format("annulus run: rank {} was ended by signal {}\n",
                                                   i + 1, WTERMSIG(status))
                                     : fmt::format("annulus run: rank {} has failed\n", i + 1);
        std::fputs(text.c_str(), stderr);
        end_all();
        std::_Exit(static_cast<int>(WIFEXITED(status) ? static_cast<Exit>(WEXITSTATUS(status))
                                                      : Exit::kDevice));
      }
      std::this_thread::sleep_for(kPoll);
    }
  }
  void end_all() {
    for (pid_t& process : processes_) {
      if (process == 0) continue;
      kill(process, SIGKILL);
      waitpid(std::exchange(process, 0), nullptr, 0);
    }
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }

  std::string folder_;
  std::vector<pid_t> processes_;  // 0: has ended. The watcher's alone while there is one
  std::atomic<bool> over_{false};
  std::thread watcher_;
};

}  // namespace

void remember_command_line(int count, char** words) { command_line().assign(words, words + count); }

void run_seat(const RunArguments& arguments, const ProblemInput& input) {
  const Seat seat = read_seat(arguments.seat);
  const std::string first = Device::open(device_options(arguments.device)).info().name;
  const Part part = run_rank(device_of(arguments, first, seat.rank), seat, arguments, input);
  std::ofstream file(seat.file, std::ios::binary);
  put(file, &part.left, 1);
  put(file, part.o.bits.data(), part.o.bits.size());
  put(file, part.lse.data(), part.lse.size());
  if (!file.flush()) base::fail(ErrorCode::kFile, "cannot write {}", seat.file);
}

RingAnswer compute_ring_of_processes(const Device& first, const RunArguments& arguments,
                                     const ProblemInput& input) {
  const Waiting waiting(fmt::format("running in {} processes", arguments.ranks));
  const Device device = device_of(arguments, first.info().name, 0);
  const CommunicatorId id = make_communicator_id(device);
  Others others;
  for (int rank = 1; rank < arguments.ranks; ++rank) {
    others.start({rank, id, others.file_of(rank)});
  }
  others.watch();
  Part own = run_rank(device, {0, id, ""}, arguments, input);
  others.finish();

  const Problem& problem = input.problem;
  const ShardMap shards = ring_shards(arguments, problem, arguments.ranks);
  RingAnswer result;
  result.info = std::move(own.info);
  result.processes = arguments.ranks;
  result.peak_bytes_per_rank = own.left.peak_bytes;
  result.answer.millis = std::move(own.millis);
  make_room(input, &result.answer);
  place_rows(shards.q[0], own.o, own.lse, &result.answer);
  for (int rank = 1; rank < arguments.ranks; ++rank) {
    const std::vector<Segment>& shard = shards.q[static_cast<std::size_t>(rank)];
    std::int64_t rows = 0;
    for (const Segment& segment : shard) rows += segment.length;
    HostTensor o = make_tensor(problem.batch, rows, problem.heads, problem.dim_v, input.order);
    std::vector<float> lse(static_cast<std::size_t>(problem.batch * problem.heads * rows));
    std::ifstream file(others.file_of(rank), std::ios::binary);
    Left left;
    take(file, &left, 1);
    take(file, o.bits.data(), o.bits.size());
    take(file, lse.data(), lse.size());
    if (!file) base::fail(ErrorCode::kFile, "what rank {} computed cannot be read", rank);
    place_rows(shard, o, lse, &result.answer);
    result.peak_bytes_per_rank = std::max(result.peak_bytes_per_rank, left.peak_bytes);
    RingRankInfo info;
    info.launches = static_cast<int>(left.launches);
    info.predicted_micros = left.predicted_micros;
    info.least_micros = left.least_micros;
    info.most_micros = left.most_micros;
    result.info.ranks.push_back(info);
  }
  return result;
}

}  // namespace annulus::program
