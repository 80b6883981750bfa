#ifndef ANNULUS_BASE_NO_SIGNALS_H_
#define ANNULUS_BASE_NO_SIGNALS_H_

#include <pthread.h>
#include <signal.h>

namespace annulus::base {

// Signals belong to the program: threads that are started during the lifetime of this object run no
// signal handlers.
class NoSignals {
 public:
  NoSignals() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~NoSignals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  NoSignals(const NoSignals&) = delete;
  NoSignals& operator=(const NoSignals&) = delete;

 private:
  sigset_t before_;
};

}  // namespace annulus::base

#endif  // ANNULUS_BASE_NO_SIGNALS_H_
