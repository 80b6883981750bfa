#ifndef ANNULUS_RING_TURN_H_
#define ANNULUS_RING_TURN_H_

// Lets one run of a ring at a time put work on streams; a second one at the same time is refused
// and does not wait, since run() promises never to wait.

#include <atomic>

#include "base/fail.h"

namespace annulus::ring {

class Turn {
 public:
  explicit Turn(std::atomic<bool>* busy) : busy_(busy) {
    if (busy_->exchange(true, std::memory_order_acquire)) {
      base::fail(ErrorCode::kInvalidArgument,
                 "another thread is putting a run of this ring on its streams; plan a ring for "
                 "each thread, or take turns");
    }
  }
  ~Turn() { busy_->store(false, std::memory_order_release); }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

 private:
  std::atomic<bool>* busy_;
};

}  // namespace annulus::ring

#endif  // ANNULUS_RING_TURN_H_
