#include "program/cli/interruption.h"

#include <unistd.h>

#include <chrono>

namespace annulus::program {

Interruption::Interruption(Kind kind) : kind_(kind) {
  sigemptyset(&signals_);
  sigaddset(&signals_, SIGINT);
  sigaddset(&signals_, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &signals_, &before_);
  waiter_ = std::thread([this] { wait(); });
}

Interruption::~Interruption() {
  over_ = true;
  pthread_kill(waiter_.native_handle(), SIGINT);  // wakes the thread
  waiter_.join();
  pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

void Interruption::wait() {
  using Clock = std::chrono::steady_clock;
  constexpr auto kTogether = std::chrono::seconds(1);
  Clock::time_point first;
  int signal = 0;
  while (true) {
    if (sigwait(&signals_, &signal) != 0) continue;
    if (over_) return;
    if (kind_ == Kind::kAsks && !arrived_.exchange(true)) {
      first = Clock::now();
      continue;
    }
    if (kind_ == Kind::kAsks && Clock::now() - first < kTogether) continue;
    struct sigaction action = {};
    action.sa_handler = SIG_DFL;
    sigaction(signal, &action, nullptr);
    pthread_sigmask(SIG_UNBLOCK, &signals_, nullptr);
    raise(signal);
    _exit(128 + signal);  // reached if another thread installed a handler in between
  }
}

}  // namespace annulus::program
