#include "program/run/ring_processes.h"

#include <fmt/format.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <thread>
#include <utility>

#include "base/fail.h"
#include "program/cli/output.h"

extern char** environ;

namespace annulus::program {
namespace {

std::vector<std::string>& command_line() {
  static std::vector<std::string> words;
  return words;
}

// The place where the started ranks meet. Other programs do not know the name of the folder.
Seat seat_in(const std::string& folder, int rank, int ranks) {
  const std::string name = std::filesystem::path(folder).filename().string();
  return {.rank = rank,
          .ranks = ranks,
          .on_host = rank,
          .address = "file:" + folder + "/meeting",
          .token = name.substr(0, 63)};
}

// The processes of the other ranks. The destructor ends those that still run. This process cannot
// notice the death of a rank while it waits for ranks. So a thread watches the processes, and ends
// the program when one of them fails, unless the ranks continue without it (--go-on).
class Others {
 public:
  explicit Others(bool go_on) : go_on_(go_on) {
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

  const std::string& folder() const { return folder_; }

  void start(int rank) {
    std::vector<std::string> words = command_line();
    words.push_back(fmt::format("--seat={}:{}", rank, folder_));
    std::vector<char*> pointers;
    for (std::string& word : words) pointers.push_back(word.data());
    pointers.push_back(nullptr);
    pid_t process = 0;
    const int code =
        posix_spawn(&process, "/proc/self/exe", nullptr, nullptr, pointers.data(), environ);
    if (code != 0) {
      base::fail(ErrorCode::kInternal, "cannot start a process for rank {}: {}", rank,
                 std::strerror(code));
    }
    processes_.push_back(process);
    ++running_;
  }
  // Starts the watching thread. Requires: all processes are started.
  void watch() {
    watcher_ = std::thread([this] { watch_all(); });
  }
  // Waits until the processes have ended, but not long: a process that has stopped is left to
  // end_all().
  void finish() {
    const auto end = std::chrono::steady_clock::now() + kLast;
    while (running_ > 0 && std::chrono::steady_clock::now() < end) {
      std::this_thread::sleep_for(kPoll);
    }
  }

 private:
  static constexpr auto kPoll = std::chrono::milliseconds(5);
  static constexpr auto kLast = std::chrono::seconds(3);

  void watch_all() {
    while (running_ > 0 && !over_) {
      for (std::size_t i = 0; i < processes_.size(); ++i) {
        int status = 0;
        if (processes_[i] == 0 || waitpid(processes_[i], &status, WNOHANG) != processes_[i]) {
          continue;
        }
        processes_[i] = 0;
        --running_;
        if (WIFEXITED(status) && WEXITSTATUS(status) == 0) continue;
        // A rank that failed has printed its error before.
        const std::string text = WIFSIGNALED(status)
                                     ? fmt::format("annulus run: rank {} was ended by signal {}\n",
                                                   i + 1, WTERMSIG(status))
                                     : fmt::format("annulus run: rank {} has failed\n", i + 1);
        std::fputs(text.c_str(), stderr);
        if (go_on_) continue;
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

  const bool go_on_;
  std::string folder_;
  std::atomic<std::size_t> running_{0};
  // 0 if the process has ended; only the watcher uses it while the watcher runs.
  std::vector<pid_t> processes_;
  std::atomic<bool> over_{false};
  std::thread watcher_;
};

}  // namespace

void remember_command_line(int count, char** words) { command_line().assign(words, words + count); }

Seat started_seat(const std::string& text, int ranks) {
  const std::size_t colon = text.find(':');
  const int rank = std::atoi(text.c_str());
  if (colon == std::string::npos || colon + 1 == text.size() || rank < 1 || rank >= ranks) {
    base::fail(ErrorCode::kInvalidArgument, "--seat is for processes that --processes starts");
  }
  return seat_in(text.substr(colon + 1), rank, ranks);
}

RingAnswer compute_ring_of_processes(const Device& first, const RunArguments& arguments,
                                     const ProblemInput& input) {
  const Waiting waiting(fmt::format("running in {} processes", arguments.ranks));
  const Device device = numbered_device(arguments.device, kind_of_device(first.info().name), 0);
  Others others(arguments.go_on);
  for (int rank = 1; rank < arguments.ranks; ++rank) others.start(rank);
  others.watch();
  const Seat seat = seat_in(others.folder(), 0, arguments.ranks);
  std::optional<RingAnswer> answer = compute_rank(seat, device, arguments, input);
  others.finish();
  return std::move(*answer);
}

}  // namespace annulus::program
