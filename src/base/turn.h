#ifndef ANNULUS_BASE_TURN_H_
#define ANNULUS_BASE_TURN_H_

// Allows one thread at a time in a section. A second thread is refused and does not wait.

#include <atomic>

#include "base/fail.h"

namespace annulus::base {

class Turn {
 public:
  // `busy` belongs to the section. Throws Error{kInvalidArgument} with the text `refusal` if
  // another thread is inside.
  Turn(std::atomic<bool>* busy, const char* refusal) : busy_(busy) {
    if (busy_->exchange(true, std::memory_order_acquire)) {
      fail(ErrorCode::kInvalidArgument, "{}", refusal);
    }
  }
  ~Turn() { busy_->store(false, std::memory_order_release); }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

 private:
  std::atomic<bool>* busy_;
};

}  // namespace annulus::base

#endif  // ANNULUS_BASE_TURN_H_
