#include "gpu/child.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <utility>

namespace annulus::gpu {
namespace {

// A longer line cannot be part of a result, and is cut.
constexpr std::size_t kMaxLineBytes = 4 << 20;

constexpr int kCannotStart = 127;

void close_if_open(int& descriptor) {
  if (descriptor >= 0) close(descriptor);
  descriptor = -1;
}

}  // namespace

Child::Child(const Command& command) {
  const auto fail = [&](const char* call) {
    tail_ = std::string(call) + ": " + std::strerror(errno);
    ended_ = true;
    outcome_.exit = kCannotStart;
  };
  // All memory is allocated before the fork.
  std::vector<char*> words;
  for (const std::string& word : command.words) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  std::vector<char*> variables;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const std::string_view text = *variable;
    const std::string_view name = text.substr(0, text.find('=') + 1);
    bool replaced = false;
    for (const std::string& other : command.variables) replaced |= other.starts_with(name);
    if (!replaced) variables.push_back(*variable);
  }
  for (const std::string& variable : command.variables) {
    variables.push_back(const_cast<char*>(variable.c_str()));
  }
  variables.push_back(nullptr);

  int to_out[2] = {-1, -1}, to_error[2] = {-1, -1};
  if (pipe2(to_out, O_CLOEXEC) != 0 || pipe2(to_error, O_CLOEXEC) != 0) {
    fail("pipe2");
    for (int* pair : {to_out, to_error}) close_if_open(pair[0]), close_if_open(pair[1]);
    return;
  }
  const int parent = getpid();
  process_ = fork();
  if (process_ == 0) {
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(kCannotStart);  // the parent died before the call above
    const int nothing = open("/dev/null", O_RDONLY);
    dup2(nothing, STDIN_FILENO);
    dup2(to_out[1], STDOUT_FILENO);
    dup2(to_error[1], STDERR_FILENO);
    execvpe(words[0], words.data(), variables.data());
    const char* why = std::strerror(errno);
    for (const char* text :
         {"cannot start ", static_cast<const char*>(words[0]), ": ", why, "\n"}) {
      if (write(STDERR_FILENO, text, std::strlen(text)) < 0) break;
    }
    _exit(kCannotStart);
  }
  close(to_out[1]);
  close(to_error[1]);
  out_ = to_out[0];
  error_ = to_error[0];
  if (process_ < 0) {
    fail("fork");
    close_if_open(out_);
    close_if_open(error_);
    return;
  }
  // Called in both processes, so that kill() finds the group whichever runs first.
  setpgid(process_, process_);
  for (const int descriptor : {out_, error_}) fcntl(descriptor, F_SETFL, O_NONBLOCK);
}

Child::~Child() {
  kill();
  look();
  close_if_open(out_);
  close_if_open(error_);
}

void Child::kill() {
  if (process_ > 0) ::kill(-process_, SIGKILL);
}

void Child::look() {
  if (ended_ || process_ <= 0) return;
  int status = 0;
  if (waitpid(process_, &status, WNOHANG) != process_) return;
  ended_ = true;
  if (WIFEXITED(status)) outcome_.exit = WEXITSTATUS(status);
  if (WIFSIGNALED(status)) outcome_.signal = WTERMSIG(status);
  // Kills the processes that the program has started too, so that they keep no pipe open. Later the
  // number may belong to another group.
  ::kill(-process_, SIGKILL);
  process_ = -1;
}

void Child::pump() {
  look();  // before reading, so that all output of an ended program is read
  read_all(out_, false);
  read_all(error_, true);
  if (ended_ && !unfinished_.empty()) lines_.push_back(std::exchange(unfinished_, {}));
}

void Child::read_all(int& descriptor, bool is_error) {
  char buffer[1 << 16];
  // A program that never stops printing must not block the others.
  constexpr int kMaxReads = 64;
  for (int reads = 0; descriptor >= 0 && reads < (ended_ ? 64 * kMaxReads : kMaxReads); ++reads) {
    const ssize_t count = read(descriptor, buffer, sizeof buffer);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return;  // nothing to read now
    if (count == 0) {
      close_if_open(descriptor);
      return;
    }
    const std::string_view text(buffer, static_cast<std::size_t>(count));
    if (is_error) {
      tail_.append(text);
      if (tail_.size() > kTailBytes) tail_.erase(0, tail_.size() - kTailBytes);
      continue;
    }
    std::size_t begin = 0;
    for (std::size_t end = text.find('\n'); end != text.npos; end = text.find('\n', begin)) {
      unfinished_.append(text.substr(begin, end - begin));
      lines_.push_back(std::exchange(unfinished_, {}));
      begin = end + 1;
    }
    unfinished_.append(text.substr(begin));
    if (unfinished_.size() > kMaxLineBytes) unfinished_.resize(kMaxLineBytes);
  }
}

std::vector<std::string> Child::take_lines() { return std::exchange(lines_, {}); }

}  // namespace annulus::gpu
