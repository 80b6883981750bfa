#ifndef ANNULUS_PROGRAM_CLI_INTERRUPTION_H_
#define ANNULUS_PROGRAM_CLI_INTERRUPTION_H_

// While an Interruption lives, the first SIGINT or SIGTERM sets a flag, and a later signal ends the
// program. Signals within one second of the first count as the first, because timeout(1) signals
// the program and then its whole process group. With kind kEnds the first signal already ends the
// program, as if no handler were installed.
//
// A thread waits for the signals, and all other threads block them. A signal handler would not
// work: NVRTC installs its own while it compiles, which is most of the time of a search, and
// NVRTC's handler ends the process.

#include <signal.h>

#include <atomic>
#include <thread>

namespace annulus::program {

// Construct it before any other thread starts, because a thread inherits the blocked signals.
class Interruption {
 public:
  enum class Kind { kAsks, kEnds };
  explicit Interruption(Kind kind = Kind::kAsks);
  ~Interruption();
  Interruption(const Interruption&) = delete;
  Interruption& operator=(const Interruption&) = delete;

  const std::atomic<bool>& arrived() const { return arrived_; }

 private:
  void wait();

  const Kind kind_;
  sigset_t signals_;
  sigset_t before_;
  std::atomic<bool> arrived_{false};
  std::atomic<bool> over_{false};
  std::thread waiter_;
};

}  // namespace annulus::program

#endif  // ANNULUS_PROGRAM_CLI_INTERRUPTION_H_
