#ifndef ANNULUS_EXCHANGE_HISTORY_H_
#define ANNULUS_EXCHANGE_HISTORY_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <utility>
#include <vector>

#include "annulus/communicator.h"

namespace annulus::exchange {

// The newest events of a communicator. Any thread may use it.
class History {
 public:
  static constexpr std::size_t kKept = 64;

  void add(CommunicatorEvent event) {
    event.time = std::chrono::system_clock::now();
    const std::lock_guard lock(mutex_);
    event.number = ++count_;
    events_.push_back(std::move(event));
    if (events_.size() > kKept) events_.pop_front();
  }
  std::vector<CommunicatorEvent> events() const {
    const std::lock_guard lock(mutex_);
    return {events_.begin(), events_.end()};
  }

 private:
  mutable std::mutex mutex_;
  std::int64_t count_ = 0;
  std::deque<CommunicatorEvent> events_;
};

}  // namespace annulus::exchange

#endif  // ANNULUS_EXCHANGE_HISTORY_H_
