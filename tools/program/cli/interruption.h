#ifndef ANNULUS_PROGRAM_CLI_INTERRUPTION_H_
#define ANNULUS_PROGRAM_CLI_INTERRUPTION_H_

// While it lives, the first Ctrl-C or kill sets a flag, and a later one ends the program. What
// comes within a second is still the first: timeout(1) tells the program, and then its whole group.
// With kind kEnds the first one already ends the program, by that signal, as if nobody handled it.
//
// A thread waits for the signals, and all others have them blocked. A handler would not do: while
// NVRTC compiles, which is most of a search, it puts its own in place, and that ends the process.

#include <signal.h>

#include <atomic>
#include <thread>

namespace annulus::program {

// Make it before any other thread: threads keep the signals blocked that were so when they began.
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
