#ifndef ANNULUS_TOOLS_GPU_CHILD_H_
#define ANNULUS_TOOLS_GPU_CHILD_H_

// A program that is run with a time limit. It has a process group of its own, which is ended by
// SIGKILL, since a program that waits for a GPU may be deaf to every other signal. When the calling
// thread ends, however that comes, the program is killed as well.

#include <string>
#include <string_view>
#include <vector>

namespace annulus::gpu {

struct Command {
  std::vector<std::string> words;      // the program's path and its arguments
  std::vector<std::string> variables;  // "NAME=value", beside those of this process
};

class Child {
 public:
  // Starts the program. Its standard input is empty. Where it cannot be started, ended() is true at
  // once and outcome().exit is 127.
  explicit Child(const Command& command);
  ~Child();  // kills it
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  // The descriptors from which pump() reads; -1 where the program has closed one.
  int out() const { return out_; }
  int error() const { return error_; }

  // Reads what there is without waiting, and looks whether the program has ended.
  void pump();
  // Ends the process group. The program may need a while to go, and one that a driver holds may
  // never go: ended() says whether it has.
  void kill();

  bool ended() const { return ended_; }
  // What was printed since the last call: whole lines alone, until the program has ended.
  std::vector<std::string> take_lines();
  // The end of what was written to the standard error, at most kTailBytes.
  const std::string& tail() const { return tail_; }
  static constexpr std::size_t kTailBytes = 2000;

  struct Outcome {
    int exit = -1;   // the exit code; -1 where a signal ended it
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
  std::string unfinished_;  // the beginning of a line
  std::vector<std::string> lines_;
  std::string tail_;
};

}  // namespace annulus::gpu

#endif  // ANNULUS_TOOLS_GPU_CHILD_H_
