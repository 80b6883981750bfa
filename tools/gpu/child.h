#ifndef ANNULUS_TOOLS_GPU_CHILD_H_
#define ANNULUS_TOOLS_GPU_CHILD_H_

// A program that runs with a time limit. It has a separate process group, which is ended by
// SIGKILL, because a program that waits for a GPU may not react to other signals. When the calling
// thread ends for any reason, the program is killed too.

#include <string>
#include <string_view>
#include <vector>

namespace annulus::gpu {

struct Command {
  std::vector<std::string> words;      // the program's path and its arguments
  std::vector<std::string> variables;  // "NAME=value", in addition to this process's variables
};

class Child {
 public:
  // Starts the program with an empty standard input. If it cannot be started, ended() is true at
  // once and outcome().exit is 127.
  explicit Child(const Command& command);
  ~Child();  // kills the program
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  // The descriptors from which pump() reads. A descriptor is -1 after the program has closed it.
  int out() const { return out_; }
  int error() const { return error_; }

  // Reads all available output without waiting, and checks whether the program has ended.
  void pump();
  // Kills the process group. The program may take a while to end, and may never end if a driver
  // holds it. ended() shows whether it has ended.
  void kill();

  bool ended() const { return ended_; }
  // The lines printed since the last call. An unfinished line is included only after the program
  // has ended.
  std::vector<std::string> take_lines();
  // The end of the standard error, at most kTailBytes bytes.
  const std::string& tail() const { return tail_; }
  static constexpr std::size_t kTailBytes = 2000;

  struct Outcome {
    int exit = -1;   // the exit code; -1 if a signal ended the program
    int signal = 0;  // the signal that ended it
  };
  // Requires: ended().
  const Outcome& outcome() const { return outcome_; }

 private:
  void read_all(int& descriptor, bool is_error);
  void look();

  int process_ = -1;
  int out_ = -1;
  int error_ = -1;
  bool ended_ = false;
  Outcome outcome_;
  std::string unfinished_;  // the beginning of an unfinished line
  std::vector<std::string> lines_;
  std::string tail_;
};

}  // namespace annulus::gpu

#endif  // ANNULUS_TOOLS_GPU_CHILD_H_
