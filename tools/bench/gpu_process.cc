#include "gpu_process.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>

#include "base/fail.h"
#include "harness.h"

namespace annulus::bench {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kLongestLine = 1 << 20;

// The child between this process and the program. It leads the process group and waits for the
// program. When this process ends, the kernel signals only the child, and none of the processes
// that the program has started. So the child then kills the whole group.
[[noreturn]] void guard(pid_t parent, int in, int out, char* const* arguments) {
  setpgid(0, 0);
  std::signal(SIGTERM, [](int) { kill(0, SIGKILL); });
  std::signal(SIGPIPE, SIG_DFL);
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (getppid() != parent) _exit(0);  // the parent had ended before prctl()
  const pid_t program = fork();
  if (program == 0) {
    std::signal(SIGTERM, SIG_DFL);
    dup2(in, STDIN_FILENO);
    dup2(out, STDOUT_FILENO);
    execv(arguments[0], arguments);
    dprintf(STDERR_FILENO, "gpu_bench: %s: %s\n", arguments[0], std::strerror(errno));
    _exit(127);
  }
  // The child must not keep open the pipes of other programs, nor the pipe of this program after
  // the program has ended.
  constexpr int kDescriptors = 1024;
  for (int one = 0; one < kDescriptors; ++one) {
    if (one != STDERR_FILENO) close(one);
  }
  int status = 0;
  while (program > 0 && waitpid(program, &status, 0) < 0 && errno == EINTR) continue;
  kill(0, SIGKILL);
  _exit(127);
}

}  // namespace

GpuProcess::GpuProcess(const std::vector<std::string>& command) {
  // So a write to a program that has ended is an error and not a signal.
  std::signal(SIGPIPE, SIG_IGN);
  std::vector<char*> arguments;
  for (const std::string& one : command) arguments.push_back(const_cast<char*>(one.c_str()));
  arguments.push_back(nullptr);
  int down[2] = {-1, -1}, up[2] = {-1, -1};
  const pid_t self = getpid();
  if (pipe2(down, O_CLOEXEC) == 0 && pipe2(up, O_CLOEXEC) == 0) child_ = fork();
  if (child_ == 0) guard(self, down[0], up[1], arguments.data());
  const int error = errno;
  if (down[0] >= 0) close(down[0]);
  if (up[1] >= 0) close(up[1]);
  to_ = down[1];
  from_ = up[0];
  if (child_ < 0) {
    if (to_ >= 0) close(to_);
    if (from_ >= 0) close(from_);
    base::fail(ErrorCode::kFile, "no process can be made for {}: {}", command.front(),
               std::strerror(error));
  }
  setpgid(child_, child_);  // the child does the same, whichever comes first
}

GpuProcess::~GpuProcess() {
  kill(-child_, SIGKILL);
  close(to_);
  close(from_);
  while (waitpid(child_, nullptr, 0) < 0 && errno == EINTR) continue;
}

void GpuProcess::ask(const Json& question) {
  const std::string line = question.dump() + "\n";
  // A pipe accepts a short line as a whole. If the program has ended and does not get it, the read
  // of the answer shows that.
  [[maybe_unused]] const ssize_t written = write(to_, line.data(), line.size());
}

GpuProcess::Line GpuProcess::next_line(double seconds) {
  const double until = wall_seconds() + seconds;
  for (;;) {
    const std::size_t end = read_.find('\n');
    if (end != std::string::npos) {
      const std::string text = read_.substr(0, end);
      read_.erase(0, end + 1);
      Json object = Json::parse(text, nullptr, false);
      if (object.is_object()) return {std::move(object), ""};
      return {std::nullopt,
              fmt::format("wrote '{}', which is not a JSON object", text.substr(0, 80))};
    }
    if (read_.size() > kLongestLine) {
      return {std::nullopt, fmt::format("wrote {} bytes without the end of a line", read_.size())};
    }
    pollfd from = {from_, POLLIN, 0};
    const double left = std::clamp(until - wall_seconds(), 0.0, 1e6);
    const int ready = poll(&from, 1, static_cast<int>(left * 1000 + 0.5));
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) return {};
    char bytes[65536];
    const ssize_t count = read(from_, bytes, sizeof bytes);
    if (count <= 0) return {std::nullopt, "has ended"};
    read_.append(bytes, static_cast<std::size_t>(count));
  }
}

}  // namespace annulus::bench
